// SPDX-License-Identifier: GPL-2.0-only
/* A driver that spins with interrupts off, one second after it was loaded at the latest. */
#include <linux/kthread.h>
#include <linux/module.h>
static int spin(void *unused)
{
	local_irq_disable();
	for (;;)
		cpu_relax();
	return 0;
}
static int __init spin_init(void)
{
	return PTR_ERR_OR_ZERO(kthread_run(spin, NULL, "spin"));
}
module_init(spin_init);
MODULE_LICENSE("GPL");
