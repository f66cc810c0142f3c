// SPDX-License-Identifier: GPL-2.0-only
/*
 * A driver that hangs. It spins with interrupts off: one second after it was loaded at the latest (at=load), when it
 * is unloaded (at=unload), or at the nth SCSI command, of an opcode or of any, of the kernel's scsi_debug
 * (at=command). Or it sleeps for ever holding its lock, for which another thread waits (at=lock).
 */
#include <linux/delay.h>
#include <linux/kprobes.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <scsi/scsi_cmnd.h>

static char *at = "load";
module_param(at, charp, 0444);
static int nth = 1000;
module_param(nth, int, 0444);
static int opcode = -1;
module_param(opcode, int, 0444);

static DEFINE_MUTEX(lock);
static atomic_t commands;

static int spin(void *unused)
{
	local_irq_disable();
	for (;;)
		cpu_relax();
	return 0;
}

static int lie(void *unused)
{
	mutex_lock(&lock);
	for (;;) {
		set_current_state(TASK_UNINTERRUPTIBLE);
		schedule();
	}
	return 0;
}

static int command(struct kprobe *unused, struct pt_regs *regs)
{
	struct scsi_cmnd *scp = (struct scsi_cmnd *)regs->si;

	if ((opcode < 0 || scp->cmnd[0] == opcode) && atomic_inc_return(&commands) == nth)
		spin(NULL);
	return 0;
}

static struct kprobe probe = { .symbol_name = "scsi_debug_queuecommand", .pre_handler = command };

static int __init hang_init(void)
{
	int (*thread)(void *) = !strcmp(at, "load") ? spin : !strcmp(at, "lock") ? lie : NULL;
	struct task_struct *first = thread ? kthread_run(thread, NULL, "hang") : NULL;

	if (IS_ERR(first))
		return PTR_ERR(first);
	if (!strcmp(at, "lock")) {
		msleep(100);
		return PTR_ERR_OR_ZERO(kthread_run(lie, NULL, "hang-waits"));
	}
	return strcmp(at, "command") ? 0 : register_kprobe(&probe);
}

static void __exit hang_exit(void)
{
	spin(NULL);
}

module_init(hang_init);
module_exit(hang_exit);
MODULE_LICENSE("GPL");
