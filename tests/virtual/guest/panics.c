// SPDX-License-Identifier: GPL-2.0-only
/* A driver that panics as it is loaded, or so many seconds after it. */
#include <linux/module.h>
#include <linux/timer.h>
static unsigned int after_s;
module_param(after_s, uint, 0444);
static void end(struct timer_list *unused)
{
	panic("bad driver of a test, after %u s", after_s);
}
static DEFINE_TIMER(ends, end);
static int __init panics_init(void)
{
	if (!after_s)
		panic("bad driver of a test");
	mod_timer(&ends, jiffies + after_s * HZ);
	return 0;
}
module_init(panics_init);
MODULE_LICENSE("GPL");
