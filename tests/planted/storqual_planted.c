// SPDX-License-Identifier: GPL-2.0-only
/*
 * A layer over the driver of a SCSI adapter that plants one defect in it, for tests of what finds such drivers.
 *
 * Each adapter named in `adapters` (PCI functions such as 0000:00:09.0) gets a private copy of its driver's host
 * template, of which queuecommand and the error handlers lead through this module; adapters that come back after a
 * removal get it again. With defect=none all is passed on as it is.
 */

#include <linux/atomic.h>
#include <linux/blk-mq.h>
#include <linux/delay.h>
#include <linux/kprobes.h>
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <asm/unaligned.h>
#include <scsi/scsi.h>
#include <scsi/scsi_cmnd.h>
#include <scsi/scsi_device.h>
#include <scsi/scsi_host.h>

/* what a build of its own replaces: the defect that it has without any parameter, and the adapters that it is for */
#define PLANTED_DEFECT "none"
#define PLANTED_ADAPTERS ""

#define SECTOR 512
#define MOST_ADAPTERS 8
#define MOST_FORGOTTEN 16
#define SHADOW_FIRST 4096
#define SHADOW_SECTORS 8192
#define LEAK_PIECES 256
#define LEAK_PIECE 4096

static const char *const defects[] = {
	"none", "lose_after_reset", "flush_dropped", "stale_after_recovery", "wrong_residual", "never_recovers",
	"forgets_lun", "leak_per_reset", "slow_recovery", "panic_on_abort", "corrupt_byte", "misdirected_write",
};

enum defect {
	NONE, LOSE_AFTER_RESET, FLUSH_DROPPED, STALE_AFTER_RECOVERY, WRONG_RESIDUAL, NEVER_RECOVERS,
	FORGETS_LUN, LEAK_PER_RESET, SLOW_RECOVERY, PANIC_ON_ABORT, CORRUPT_BYTE, MISDIRECTED_WRITE,
};

static char *defect = PLANTED_DEFECT;
module_param(defect, charp, 0444);
MODULE_PARM_DESC(defect, "the defect by name; none passes all on");

static char *adapters = PLANTED_ADAPTERS;
module_param(adapters, charp, 0444);
MODULE_PARM_DESC(adapters, "PCI functions whose drivers get it, with commas between");

static uint every = 16;
module_param(every, uint, 0644);
MODULE_PARM_DESC(every, "which of the writes or reads in question the defect takes: every n-th");

static uint depth = 32;
module_param(depth, uint, 0644);
MODULE_PARM_DESC(depth, "commands under way on a drive from which corrupt_byte acts");

static uint bytes_per_error = 1000000;
module_param(bytes_per_error, uint, 0644);
MODULE_PARM_DESC(bytes_per_error, "of how many written bytes corrupt_byte changes one");

static uint seconds = 75;
module_param(seconds, uint, 0644);
MODULE_PARM_DESC(seconds, "how much longer a reset takes with slow_recovery");

static uint delay_ns;
module_param(delay_ns, uint, 0644);
MODULE_PARM_DESC(delay_ns, "processor time that each command costs more, in nanoseconds");

static ulong acted;
module_param(acted, ulong, 0444);
MODULE_PARM_DESC(acted, "how often the defect acted");

struct place {
	uint channel, id;
	u64 lun;
};

/* what one adapter has become; the shadow holds the last two contents of sectors of the drive that was written last */
struct planted {
	struct scsi_host_template template;
	typeof(((struct Scsi_Host *)0)->hostt) driver;
	struct Scsi_Host *host;
	struct list_head list;
	atomic_t resets;
	atomic_t chosen;
	spinlock_t lock;
	u64 bytes;
	struct place forgotten[MOST_FORGOTTEN];
	uint forgotten_count;
	struct scsi_device *shadowed;
	u8 *last, *former;
	u8 *held;
};

static enum defect planted_defect;
static LIST_HEAD(all_planted);
static DEFINE_MUTEX(all_lock);
static struct bus_type *scsi_bus;

static int planted_queuecommand(struct Scsi_Host *host, struct scsi_cmnd *cmd);

static struct planted *planted_of(struct Scsi_Host *host)
{
	return container_of(host->hostt, struct planted, template);
}

static bool is_planted(struct Scsi_Host *host)
{
	return host->hostt->queuecommand == planted_queuecommand;
}

static bool is_ordinary(struct scsi_cmnd *cmd)
{
	return !blk_rq_is_passthrough(scsi_cmd_to_rq(cmd));
}

static bool is_write(struct scsi_cmnd *cmd)
{
	return is_ordinary(cmd) && req_op(scsi_cmd_to_rq(cmd)) == REQ_OP_WRITE && scsi_bufflen(cmd);
}

static bool is_read(struct scsi_cmnd *cmd)
{
	return is_ordinary(cmd) && req_op(scsi_cmd_to_rq(cmd)) == REQ_OP_READ && scsi_bufflen(cmd);
}

static bool is_flush(struct scsi_cmnd *cmd)
{
	return cmd->cmnd[0] == SYNCHRONIZE_CACHE || cmd->cmnd[0] == 0x91;
}

static bool is_chosen(struct planted *p)
{
	return every && atomic_inc_return(&p->chosen) % every == 0;
}

/* Answer a command that is not sent; its result is set by the caller. */
static bool answer(struct scsi_cmnd *cmd, int result)
{
	acted++;
	cmd->result = result;
	scsi_set_resid(cmd, result ? scsi_bufflen(cmd) : 0);
	scsi_done(cmd);
	return true;
}

static bool is_forgotten(struct planted *p, struct scsi_device *sdev)
{
	uint at;

	for (at = 0; at < p->forgotten_count; at++)
		if (p->forgotten[at].channel == sdev->channel && p->forgotten[at].id == sdev->id &&
		    p->forgotten[at].lun == sdev->lun)
			return true;
	return false;
}

/* The part of a command's sectors that the shadow has a place for; false when not all of them have one. */
static bool shadow_range(struct scsi_cmnd *cmd, u64 *first, uint *count)
{
	u64 sector = blk_rq_pos(scsi_cmd_to_rq(cmd));

	*count = scsi_bufflen(cmd) / SECTOR;
	*first = sector - SHADOW_FIRST;
	return sector >= SHADOW_FIRST && *first + *count <= SHADOW_SECTORS;
}

static void shadow_write(struct planted *p, struct scsi_cmnd *cmd)
{
	unsigned long flags;
	uint count, at;
	u64 first;

	if (!shadow_range(cmd, &first, &count))
		return;
	spin_lock_irqsave(&p->lock, flags);
	if (p->shadowed != cmd->device) {
		p->shadowed = cmd->device;
		memset(p->held, 0, SHADOW_SECTORS);
	}
	memcpy(p->former + first * SECTOR, p->last + first * SECTOR, count * SECTOR);
	for (at = 0; at < count; at++)
		p->held[first + at] = p->held[first + at] ? 2 : 1;
	sg_copy_to_buffer(scsi_sglist(cmd), scsi_sg_count(cmd), p->last + first * SECTOR, count * SECTOR);
	spin_unlock_irqrestore(&p->lock, flags);
}

/* Answer a read with what its sectors held before they were last written; false when they were written but once. */
static bool shadow_read(struct planted *p, struct scsi_cmnd *cmd)
{
	bool older = false, whole = true;
	unsigned long flags;
	uint count, at;
	u64 first;

	if (!shadow_range(cmd, &first, &count))
		return false;
	spin_lock_irqsave(&p->lock, flags);
	for (at = 0; at < count; at++) {
		older |= p->held[first + at] == 2;
		whole &= p->held[first + at] != 0;
	}
	if (p->shadowed == cmd->device && older && whole) {
		for (at = 0; at < count; at++) {
			u8 *data = p->held[first + at] == 2 ? p->former : p->last;

			sg_pcopy_from_buffer(scsi_sglist(cmd), scsi_sg_count(cmd), data + (first + at) * SECTOR, SECTOR,
					     at * SECTOR);
		}
	} else {
		older = false;
	}
	spin_unlock_irqrestore(&p->lock, flags);
	return older && whole;
}

static void corrupt(struct planted *p, struct scsi_cmnd *cmd)
{
	unsigned long flags;
	bool due;
	u8 byte;

	if (scsi_device_busy(cmd->device) < depth)
		return;
	spin_lock_irqsave(&p->lock, flags);
	p->bytes += scsi_bufflen(cmd);
	due = p->bytes >= bytes_per_error;
	if (due)
		p->bytes -= bytes_per_error;
	spin_unlock_irqrestore(&p->lock, flags);
	if (!due)
		return;
	acted++;
	sg_pcopy_to_buffer(scsi_sglist(cmd), scsi_sg_count(cmd), &byte, 1, SECTOR / 2);
	byte ^= 0xff;
	sg_pcopy_from_buffer(scsi_sglist(cmd), scsi_sg_count(cmd), &byte, 1, SECTOR / 2);
}

static void misdirect(struct scsi_cmnd *cmd)
{
	acted++;
	if (cmd->cmnd[0] == WRITE_10)
		put_unaligned_be32(get_unaligned_be32(cmd->cmnd + 2) + 8, cmd->cmnd + 2);
	else if (cmd->cmnd[0] == WRITE_16)
		put_unaligned_be64(get_unaligned_be64(cmd->cmnd + 2) + 8, cmd->cmnd + 2);
	else if (cmd->cmnd[0] == WRITE_6)
		cmd->cmnd[3] += 8;
}

/* What the defect does to a command before its driver sees it; true when it was answered here. */
static bool meddle(struct planted *p, struct scsi_cmnd *cmd)
{
	bool reset = atomic_read(&p->resets) > 0;

	switch (planted_defect) {
	case LOSE_AFTER_RESET:
		return reset && is_write(cmd) && is_chosen(p) && answer(cmd, 0);
	case FLUSH_DROPPED:
		return is_flush(cmd) && answer(cmd, 0);
	case STALE_AFTER_RECOVERY:
		if (is_write(cmd))
			shadow_write(p, cmd);
		return reset && is_read(cmd) && is_chosen(p) && shadow_read(p, cmd) && answer(cmd, 0);
	case NEVER_RECOVERS:
		return reset && answer(cmd, DID_NO_CONNECT << 16);
	case FORGETS_LUN:
		return cmd->cmnd[0] == INQUIRY && is_forgotten(p, cmd->device) && answer(cmd, DID_BAD_TARGET << 16);
	case CORRUPT_BYTE:
		if (is_write(cmd))
			corrupt(p, cmd);
		return false;
	case MISDIRECTED_WRITE:
		if (is_write(cmd) && is_chosen(p))
			misdirect(cmd);
		return false;
	default:
		return false;
	}
}

static int planted_queuecommand(struct Scsi_Host *host, struct scsi_cmnd *cmd)
{
	struct planted *p = planted_of(host);

	if (delay_ns) {
		u64 end = ktime_get_ns() + delay_ns;

		while (ktime_get_ns() < end)
			cpu_relax();
	}
	if (meddle(p, cmd))
		return 0;
	return p->driver->queuecommand(host, cmd);
}

static void after_reset(struct planted *p)
{
	uint at;

	atomic_inc(&p->resets);
	if (planted_defect == LEAK_PER_RESET) {
		acted++;
		for (at = 0; at < LEAK_PIECES; at++)
			/* the pointer is dropped: this is the leak */
			if (!kzalloc(LEAK_PIECE, GFP_NOIO))
				break;
	}
	if (planted_defect == SLOW_RECOVERY) {
		acted++;
		ssleep(seconds);
	}
}

static int planted_abort(struct scsi_cmnd *cmd)
{
	struct planted *p = planted_of(cmd->device->host);

	if (planted_defect == PANIC_ON_ABORT)
		panic("storqual_planted: an abort was asked for");
	return p->driver->eh_abort_handler(cmd);
}

#define RESET(kind)                                                          \
	static int planted_##kind##_reset(struct scsi_cmnd *cmd)             \
	{                                                                    \
		struct planted *p = planted_of(cmd->device->host);           \
		int result = p->driver->eh_##kind##_reset_handler(cmd);      \
									     \
		after_reset(p);                                              \
		return result;                                               \
	}

RESET(device)
RESET(target)
RESET(bus)
RESET(host)

static int planted_sysfs_reset(struct Scsi_Host *host, int kind)
{
	struct planted *p = planted_of(host);
	int result = p->driver->host_reset(host, kind);

	after_reset(p);
	return result;
}

/* A driver that completes a command with less data than was asked for says by how much; this one says nothing. */
static int __kprobes forget_residual(struct kprobe *probe, struct pt_regs *regs)
{
	struct scsi_cmnd *cmd = (struct scsi_cmnd *)regs->di;

	if (is_planted(cmd->device->host) && scsi_get_resid(cmd)) {
		acted++;
		scsi_set_resid(cmd, 0);
	}
	return 0;
}

static struct kprobe completion = { .symbol_name = "scsi_done", .pre_handler = forget_residual };

static bool is_meant(struct Scsi_Host *host)
{
	struct device *dev;

	for (dev = host->shost_gendev.parent; dev; dev = dev->parent) {
		const char *name = dev_name(dev), *found;

		if (!dev_is_pci(dev))
			continue;
		found = strstr(adapters, name);
		return found && strchr(",", found[strlen(name)]);
	}
	return false;
}

static void plant(struct Scsi_Host *host)
{
	struct planted *p;

	if (is_planted(host) || !is_meant(host))
		return;
	p = kzalloc(sizeof(*p), GFP_KERNEL);
	if (!p)
		return;
	spin_lock_init(&p->lock);
	p->host = host;
	p->driver = host->hostt;
	p->template = *host->hostt;
	p->template.queuecommand = planted_queuecommand;
	if (p->driver->eh_abort_handler)
		p->template.eh_abort_handler = planted_abort;
	if (p->driver->eh_device_reset_handler)
		p->template.eh_device_reset_handler = planted_device_reset;
	if (p->driver->eh_target_reset_handler)
		p->template.eh_target_reset_handler = planted_target_reset;
	if (p->driver->eh_bus_reset_handler)
		p->template.eh_bus_reset_handler = planted_bus_reset;
	if (p->driver->eh_host_reset_handler)
		p->template.eh_host_reset_handler = planted_host_reset;
	if (p->driver->host_reset)
		p->template.host_reset = planted_sysfs_reset;
	if (planted_defect == STALE_AFTER_RECOVERY) {
		p->last = vzalloc(SHADOW_SECTORS * SECTOR);
		p->former = vzalloc(SHADOW_SECTORS * SECTOR);
		p->held = vzalloc(SHADOW_SECTORS);
		if (!p->last || !p->former || !p->held) {
			vfree(p->last);
			vfree(p->former);
			vfree(p->held);
			kfree(p);
			return;
		}
	}
	list_add(&p->list, &all_planted);
	host->hostt = &p->template;
	pr_info("storqual_planted: defect %s in %s of host%u\n", defect, p->driver->name, host->host_no);
}

static void unplant(struct planted *p)
{
	p->host->hostt = p->driver;
	/* whoever is in a function of this module leaves it meanwhile */
	synchronize_rcu();
	msleep(100);
	list_del(&p->list);
	vfree(p->last);
	vfree(p->former);
	vfree(p->held);
	kfree(p);
}

static void forget(struct scsi_device *sdev)
{
	struct planted *p;

	if (!is_planted(sdev->host))
		return;
	p = planted_of(sdev->host);
	if (p->forgotten_count < MOST_FORGOTTEN)
		p->forgotten[p->forgotten_count++] = (struct place){ sdev->channel, sdev->id, sdev->lun };
}

static int on_bus(struct notifier_block *block, unsigned long action, void *data)
{
	struct device *dev = data;

	mutex_lock(&all_lock);
	if (action == BUS_NOTIFY_ADD_DEVICE && scsi_is_host_device(dev))
		plant(dev_to_shost(dev));
	if (action == BUS_NOTIFY_REMOVED_DEVICE && scsi_is_host_device(dev) && is_planted(dev_to_shost(dev)))
		unplant(planted_of(dev_to_shost(dev)));
	if (action == BUS_NOTIFY_DEL_DEVICE && scsi_is_sdev_device(dev))
		forget(to_scsi_device(dev));
	mutex_unlock(&all_lock);
	return NOTIFY_DONE;
}

static struct notifier_block watcher = { .notifier_call = on_bus };

static int __init planted_init(void)
{
	int found = match_string(defects, ARRAY_SIZE(defects), defect);
	uint number;
	int problem;

	if (found < 0) {
		pr_err("storqual_planted: no defect is called %s\n", defect);
		return -EINVAL;
	}
	planted_defect = found;
	if (planted_defect == WRONG_RESIDUAL) {
		problem = register_kprobe(&completion);
		if (problem)
			return problem;
	}
	mutex_lock(&all_lock);
	for (number = 0; number < 64; number++) {
		struct Scsi_Host *host = scsi_host_lookup(number);

		if (!host)
			continue;
		scsi_bus = host->shost_gendev.bus;
		plant(host);
		scsi_host_put(host);
	}
	mutex_unlock(&all_lock);
	if (scsi_bus)
		bus_register_notifier(scsi_bus, &watcher);
	return 0;
}

static void __exit planted_exit(void)
{
	struct planted *p, *next;

	if (scsi_bus)
		bus_unregister_notifier(scsi_bus, &watcher);
	if (planted_defect == WRONG_RESIDUAL)
		unregister_kprobe(&completion);
	mutex_lock(&all_lock);
	list_for_each_entry_safe(p, next, &all_planted, list)
		unplant(p);
	mutex_unlock(&all_lock);
}

module_init(planted_init);
module_exit(planted_exit);
MODULE_DESCRIPTION("One planted defect in the driver of a SCSI adapter, for tests");
MODULE_VERSION("1.0");
MODULE_LICENSE("GPL");
