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
#include <linux/blkdev.h>
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
#define PLANTED_ACT "lose"
#define PLANTED_FROM 0
#define PLANTED_EVERY 16

#define SECTOR 512
#define MOST_ADAPTERS 8
#define MOST_FORGOTTEN 16
#define SHADOW_SECTORS 8192
#define LEAK_PIECES 256
#define LEAK_PIECE 4096
#define MOST_DRIVES 64

static const char *const defects[] = {
	"none", "lose_after_reset", "flush_dropped", "stale_after_recovery", "wrong_residual", "never_recovers",
	"forgets_lun", "leak_per_reset", "slow_recovery", "panic_on_abort", "corrupt_byte", "misdirected_write",
	"drawn",
};

enum defect {
	NONE, LOSE_AFTER_RESET, FLUSH_DROPPED, STALE_AFTER_RECOVERY, WRONG_RESIDUAL, NEVER_RECOVERS,
	FORGETS_LUN, LEAK_PER_RESET, SLOW_RECOVERY, PANIC_ON_ABORT, CORRUPT_BYTE, MISDIRECTED_WRITE,
	DRAWN,
};

/* of the defect `drawn`: on which commands it acts (all conditions hold), and what it does to them (kinds.json) */
static const char *const commands[] = { "any", "write", "read", "flush", "discard", "zero", "answer" };
enum command { ANY, WRITES, READS, FLUSHES, DISCARDS, ZEROES, ANSWER };
static const char *const acts[] = {
	"lose", "zero_tail", "zero_head", "zero_at_boundary", "half", "further", "cut_address", "wrap_address", "no_fua",
	"error", "good", "leak", "swallow", "neighbour", "former", "untouched", "more", "less", "late", "flip",
	"last_segment", "overrun", "elsewhere", "scribble", "last_byte",
};
enum act {
	LOSE, ZERO_TAIL, ZERO_HEAD, ZERO_AT_BOUNDARY, HALF, FURTHER, CUT_ADDRESS, WRAP_ADDRESS, NO_FUA,
	ERROR, GOOD, LEAK, SWALLOW, NEIGHBOUR, FORMER, UNTOUCHED, MORE, LESS, LATE, FLIP,
	LAST_SEGMENT, OVERRUN, ELSEWHERE, SCRIBBLE, LAST_BYTE,
};

static char *defect = PLANTED_DEFECT;
module_param(defect, charp, 0444);
MODULE_PARM_DESC(defect, "the defect by name; none passes all on");

static char *on = "write";
module_param(on, charp, 0444);
MODULE_PARM_DESC(on, "the commands that `drawn` acts on");

static char *act = PLANTED_ACT;
module_param(act, charp, 0444);
MODULE_PARM_DESC(act, "what `drawn` does to them");

#define CONDITION(name, value, text)          \
	static ulong name = value;            \
	module_param(name, ulong, 0644);      \
	MODULE_PARM_DESC(name, text)

CONDITION(from, PLANTED_FROM, "sectors of the command, at least");
CONDITION(to, ULONG_MAX, "sectors of the command, at most");
CONDITION(multiple, 0, "sectors of the command are a multiple of this, and one more with `odd`");
CONDITION(odd, 0, "see multiple");
CONDITION(segments, 0, "segments of its buffer, at least");
CONDITION(full_segments, 0, "its buffer has as many segments as its queue allows");
CONDITION(unaligned, 0, "its buffer does not begin at a multiple of so many bytes");
CONDITION(boundary, 0, "a segment of its buffer crosses a multiple of so many bytes");
CONDITION(busy, 0, "commands under way on its drive, at least");
CONDITION(sibling_busy, 0, "commands under way on other drives of its adapter, at least");
CONDITION(other_busy, 0, "commands under way on drives of another planted adapter, at least");
CONDITION(idle_ms, 0, "it comes after its drive was idle for so long");
CONDITION(nth, 1, "which of the commands after that");
CONDITION(beyond, 0, "first sector, at least");
CONDITION(misaligned, 0, "its first sector is no multiple of so many");
CONDITION(stripe, 0, "it crosses a multiple of so many sectors");
CONDITION(sequential, 0, "it begins where the last command of its kind on its drive ended");
CONDITION(opcode, 0, "its operation code");
CONDITION(after, ULONG_MAX, "operation code of the command before it on its drive");
CONDITION(reset_before, 0, "its adapter or a drive of it was reset");
CONDITION(error_ms, 0, "so many milliseconds before, at most, a command of its adapter ended with an error");
CONDITION(uneven, 0, "bytes of its buffer are no multiple of so many");
CONDITION(before_end, 0, "so many sectors before the drive's end at most");
CONDITION(fua, 0, "it has FUA");
CONDITION(processor, 0, "it is sent from the processor of this number, or from a later one");
CONDITION(alike, 0, "bytes of its first sector repeat after so many");
CONDITION(bits, 32, "for cut_address: so many bits of the address are kept");
CONDITION(capacity, 0, "for wrap_address: what is subtracted from addresses that are not below it");
CONDITION(by, 8, "for further: sectors");
CONDITION(bytes, 4096, "for leak");
CONDITION(ms, 50, "for late: milliseconds");

static char *adapters = PLANTED_ADAPTERS;
module_param(adapters, charp, 0444);
MODULE_PARM_DESC(adapters, "PCI functions whose drivers get it, with commas between");

static uint every = PLANTED_EVERY;
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
	u64 *tags;
	u64 last_at[MOST_DRIVES];
	ulong since[MOST_DRIVES];
	u64 reached[MOST_DRIVES][2];
	u8 before[MOST_DRIVES];
	u64 error_at;
	atomic_t under_way;
	u8 sector[SECTOR];
	bool has_sector;
};

/* what is put right, or wrong, when a command is completed */
struct change {
	struct list_head list;
	struct scsi_cmnd *cmd;
	enum change_kind { PUT_BACK, CHANGE_DATA, MAKE_GOOD, MAKE_ERROR, SWALLOWED, GO_BEYOND, CHANGE_LAST } kind;
	uint at;
	u8 sector[SECTOR];
};
static LIST_HEAD(changes);
static DEFINE_SPINLOCK(changes_lock);
static enum command drawn_on;
static enum act drawn_act;

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

/* Where the shadow keeps a sector of the drive that was written last; whatever else was there is forgotten. */
static uint shadow_at(struct planted *p, u64 sector, bool keep)
{
	uint at = do_div(sector, SHADOW_SECTORS);
	u64 own = sector * SHADOW_SECTORS + at;

	if (p->tags[at] != own && keep) {
		p->tags[at] = own;
		p->held[at] = 0;
	}
	return p->tags[at] == own ? at : SHADOW_SECTORS;
}

static void shadow_write(struct planted *p, struct scsi_cmnd *cmd)
{
	u64 sector = blk_rq_pos(scsi_cmd_to_rq(cmd));
	uint count = scsi_bufflen(cmd) / SECTOR, number, at;
	unsigned long flags;

	spin_lock_irqsave(&p->lock, flags);
	if (p->shadowed != cmd->device) {
		p->shadowed = cmd->device;
		memset(p->held, 0, SHADOW_SECTORS);
	}
	for (number = 0; number < count && number < SHADOW_SECTORS; number++) {
		at = shadow_at(p, sector + number, true);
		memcpy(p->former + at * SECTOR, p->last + at * SECTOR, SECTOR);
		p->held[at] = p->held[at] ? 2 : 1;
		sg_pcopy_to_buffer(scsi_sglist(cmd), scsi_sg_count(cmd), p->last + at * SECTOR, SECTOR,
				   number * SECTOR);
	}
	spin_unlock_irqrestore(&p->lock, flags);
}

/* Answer a read with what its sectors held before they were last written; false when they were written but once. */
static bool shadow_read(struct planted *p, struct scsi_cmnd *cmd)
{
	u64 sector = blk_rq_pos(scsi_cmd_to_rq(cmd));
	uint count = scsi_bufflen(cmd) / SECTOR, number, at;
	bool older = false, whole = count <= SHADOW_SECTORS;
	unsigned long flags;

	spin_lock_irqsave(&p->lock, flags);
	for (number = 0; number < count && whole; number++) {
		at = shadow_at(p, sector + number, false);
		whole = at < SHADOW_SECTORS && p->held[at];
		older |= whole && p->held[at] == 2;
	}
	if (p->shadowed == cmd->device && older && whole) {
		for (number = 0; number < count; number++) {
			at = shadow_at(p, sector + number, false);
			sg_pcopy_from_buffer(scsi_sglist(cmd), scsi_sg_count(cmd),
					     (p->held[at] == 2 ? p->former : p->last) + at * SECTOR, SECTOR,
					     number * SECTOR);
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

static uint sectors_of(struct scsi_cmnd *cmd)
{
	return scsi_bufflen(cmd) / SECTOR;
}

static bool is_data(struct scsi_cmnd *cmd, bool writes)
{
	switch (cmd->cmnd[0]) {
	case WRITE_6: case WRITE_10: case WRITE_12: case WRITE_16: case WRITE_VERIFY:
		return writes && scsi_bufflen(cmd) >= SECTOR;
	case READ_6: case READ_10: case READ_12: case READ_16:
		return !writes && scsi_bufflen(cmd) >= SECTOR;
	}
	return false;
}

static bool is_of(struct scsi_cmnd *cmd, enum command kind)
{
	u8 op = cmd->cmnd[0];

	switch (kind) {
	case ANY:
		/* some are sent from user space alone */
		return opcode || is_ordinary(cmd);
	case WRITES:
		return is_data(cmd, true);
	case READS:
		return is_data(cmd, false);
	case FLUSHES:
		return is_flush(cmd);
	case DISCARDS:
		return op == UNMAP || ((op == WRITE_SAME || op == WRITE_SAME_16) && cmd->cmnd[1] & 8);
	case ZEROES:
		return (op == WRITE_SAME || op == WRITE_SAME_16) && !(cmd->cmnd[1] & 8);
	case ANSWER:
		return cmd->sc_data_direction == DMA_FROM_DEVICE && !is_data(cmd, false) && scsi_bufflen(cmd);
	}
	return false;
}

/* The address of a command that has one, in blocks of its drive. */
static u64 address_of(struct scsi_cmnd *cmd)
{
	u8 *c = cmd->cmnd;

	switch (c[0]) {
	case READ_6: case WRITE_6:
		return get_unaligned_be24(c + 1) & 0x1fffff;
	case READ_10: case WRITE_10: case READ_12: case WRITE_12: case WRITE_VERIFY: case WRITE_SAME:
		return get_unaligned_be32(c + 2);
	case READ_16: case WRITE_16: case WRITE_SAME_16:
		return get_unaligned_be64(c + 2);
	}
	return 0;
}

static void set_address(struct scsi_cmnd *cmd, u64 address)
{
	u8 *c = cmd->cmnd;

	switch (c[0]) {
	case READ_6: case WRITE_6:
		put_unaligned_be24(address & 0x1fffff, c + 1);
		break;
	case READ_10: case WRITE_10: case READ_12: case WRITE_12: case WRITE_VERIFY: case WRITE_SAME:
		put_unaligned_be32(address, c + 2);
		break;
	case READ_16: case WRITE_16: case WRITE_SAME_16:
		put_unaligned_be64(address, c + 2);
		break;
	}
}

/* Change address and number of blocks of the first range of an UNMAP. */
static void change_range(struct scsi_cmnd *cmd, u64 by_address, int by_number)
{
	u8 list[24];

	if (scsi_bufflen(cmd) < sizeof(list))
		return;
	sg_copy_to_buffer(scsi_sglist(cmd), scsi_sg_count(cmd), list, sizeof(list));
	put_unaligned_be64(get_unaligned_be64(list + 8) + by_address, list + 8);
	put_unaligned_be32(get_unaligned_be32(list + 16) + by_number, list + 16);
	sg_copy_from_buffer(scsi_sglist(cmd), scsi_sg_count(cmd), list, sizeof(list));
}

/* Change the number of blocks that a command says; its data stays as long as it is. */
static void add_blocks(struct scsi_cmnd *cmd, int number)
{
	u8 *c = cmd->cmnd;

	switch (c[0]) {
	case WRITE_10: case WRITE_VERIFY: case WRITE_SAME: case READ_10:
		put_unaligned_be16(get_unaligned_be16(c + 7) + number, c + 7);
		break;
	case WRITE_12: case READ_12:
		put_unaligned_be32(get_unaligned_be32(c + 6) + number, c + 6);
		break;
	case WRITE_16: case WRITE_SAME_16: case READ_16:
		put_unaligned_be32(get_unaligned_be32(c + 10) + number, c + 10);
		break;
	case UNMAP:
		change_range(cmd, 0, number);
	}
}

static bool repeats(struct scsi_cmnd *cmd)
{
	u8 first[64];

	if (alike >= sizeof(first) || !scsi_sglist(cmd) || scsi_bufflen(cmd) < sizeof(first))
		return false;
	sg_pcopy_to_buffer(scsi_sglist(cmd), scsi_sg_count(cmd), first, sizeof(first), 0);
	return !memcmp(first, first + alike, sizeof(first) - alike);
}

static bool has_buffer(struct scsi_cmnd *cmd)
{
	struct scatterlist *sg;
	bool crosses = !boundary;
	int at;

	if (scsi_sg_count(cmd) < segments)
		return false;
	if (full_segments && scsi_sg_count(cmd) < queue_max_segments(scsi_cmd_to_rq(cmd)->q))
		return false;
	if (processor && raw_smp_processor_id() < processor)
		return false;
	if (alike && !repeats(cmd))
		return false;
	if (unaligned && (!scsi_sglist(cmd) || scsi_sglist(cmd)->offset % unaligned == 0))
		return false;
	if (boundary)
		scsi_for_each_sg(cmd, sg, scsi_sg_count(cmd), at)
			crosses |= sg_phys(sg) / boundary != (sg_phys(sg) + sg->length - 1) / boundary;
	return crosses;
}

static uint busy_elsewhere(struct planted *own)
{
	struct planted *p;
	uint found = 0;

	rcu_read_lock();
	list_for_each_entry_rcu(p, &all_planted, list)
		if (p != own)
			found += atomic_read(&p->under_way);
	rcu_read_unlock();
	return found;
}

/* Whether the drawn defect acts on a command: the drive's idle time is kept for every one. */
static bool is_drawn(struct planted *p, struct scsi_cmnd *cmd)
{
	uint drive = (cmd->device->id * 8 + cmd->device->lun) % MOST_DRIVES;
	u64 now = ktime_get_ns(), block = cmd->device->sector_size ?: SECTOR;
	bool data = is_data(cmd, true) || is_data(cmd, false);
	bool idle = now - p->last_at[drive] >= (u64)idle_ms * NSEC_PER_MSEC;
	u64 first = address_of(cmd) * block / SECTOR, end = first + sectors_of(cmd);
	u64 *reached = &p->reached[drive][is_data(cmd, true)];
	bool follows = data && *reached == first;
	uint here = scsi_device_busy(cmd->device), all = atomic_read(&p->under_way);
	u8 before = p->before[drive];

	p->before[drive] = cmd->cmnd[0];
	if (data)
		*reached = end;
	p->last_at[drive] = now;
	if (!is_of(cmd, drawn_on))
		return false;
	p->since[drive] = idle_ms && idle ? 1 : p->since[drive] + 1;
	if (idle_ms && p->since[drive] != nth)
		return false;
	if (data && (sectors_of(cmd) < from || sectors_of(cmd) > to))
		return false;
	if (data && multiple && sectors_of(cmd) % multiple != (odd ? 1 : 0))
		return false;
	if (!has_buffer(cmd))
		return false;
	if (here < busy || (other_busy && busy_elsewhere(p) < other_busy))
		return false;
	if (sibling_busy && all < here + sibling_busy)
		return false;
	if (reset_before && !atomic_read(&p->resets))
		return false;
	if (error_ms && (!p->error_at || now - p->error_at > (u64)error_ms * NSEC_PER_MSEC))
		return false;
	if (uneven && scsi_bufflen(cmd) % uneven == 0)
		return false;
	if (after != ULONG_MAX && before != after)
		return false;
	if (opcode && cmd->cmnd[0] != opcode)
		return false;
	if ((sequential && !follows) || (misaligned && first % misaligned == 0))
		return false;
	if (stripe && (!data || first / stripe == (end - 1) / stripe))
		return false;
	if (fua && !(cmd->cmnd[0] != WRITE_6 && cmd->cmnd[1] & 8))
		return false;
	if (first < beyond)
		return false;
	if (before_end && (!scsi_cmd_to_rq(cmd)->q->disk ||
			   end + before_end < get_capacity(scsi_cmd_to_rq(cmd)->q->disk)))
		return false;
	return is_chosen(p);
}

static struct change *new_change(struct scsi_cmnd *cmd, enum change_kind kind, uint at)
{
	struct change *made = kzalloc(sizeof(*made), GFP_ATOMIC);

	if (made) {
		made->cmd = cmd;
		made->kind = kind;
		made->at = at;
	}
	return made;
}

static void add_change(struct change *made)
{
	unsigned long flags;

	spin_lock_irqsave(&changes_lock, flags);
	list_add(&made->list, &changes);
	spin_unlock_irqrestore(&changes_lock, flags);
}

/* Send another sector at a place of the data of a write, or receive it with a read; the memory is put back. */
static void change_sector(struct scsi_cmnd *cmd, uint at, const u8 *sector)
{
	bool writes = is_data(cmd, true);
	struct change *made = new_change(cmd, writes ? PUT_BACK : CHANGE_DATA, at);

	if (!made)
		return;
	acted++;
	if (writes) {
		sg_pcopy_to_buffer(scsi_sglist(cmd), scsi_sg_count(cmd), made->sector, SECTOR, at);
		sg_pcopy_from_buffer(scsi_sglist(cmd), scsi_sg_count(cmd), (void *)sector, SECTOR, at);
	} else {
		memcpy(made->sector, sector, SECTOR);
	}
	add_change(made);
}

static const u8 zeroes[SECTOR];

/* What a write would have had at its boundary in memory; the sector with the first byte behind it. */
static uint boundary_at(struct scsi_cmnd *cmd)
{
	struct scatterlist *sg;
	uint done = 0;
	int at;

	scsi_for_each_sg(cmd, sg, scsi_sg_count(cmd), at) {
		u64 first = sg_phys(sg);

		if (boundary && first / boundary != (first + sg->length - 1) / boundary)
			return (done + boundary - first % boundary) / SECTOR * SECTOR;
		done += sg->length;
	}
	return 0;
}

/* Change a byte behind the last segment, where that does not end with a page, behind which another's memory begins. */
static void go_beyond(struct scsi_cmnd *cmd)
{
	struct scatterlist *sg = sg_last(scsi_sglist(cmd), scsi_sg_count(cmd));

	if (!offset_in_page(sg->offset + sg->length))
		return;
	acted++;
	((u8 *)sg_virt(sg))[sg->length] ^= 0xff;
}

/* Change the last byte of an answer that filled its buffer. */
static void change_last(struct scsi_cmnd *cmd)
{
	uint last = scsi_bufflen(cmd) - 1;
	u8 byte;

	if (cmd->result || scsi_get_resid(cmd))
		return;
	acted++;
	sg_pcopy_to_buffer(scsi_sglist(cmd), scsi_sg_count(cmd), &byte, 1, last);
	byte ^= 0xff;
	sg_pcopy_from_buffer(scsi_sglist(cmd), scsi_sg_count(cmd), &byte, 1, last);
}

/* Put right, or wrong, what is to be when a command is completed; true when it had been swallowed. */
static bool finish_changes(struct scsi_cmnd *cmd)
{
	struct change *made, *next;
	unsigned long flags;
	bool swallowed = false;

	if (list_empty(&changes))
		return false;
	spin_lock_irqsave(&changes_lock, flags);
	list_for_each_entry_safe(made, next, &changes, list) {
		if (made->cmd != cmd)
			continue;
		list_del(&made->list);
		switch (made->kind) {
		case PUT_BACK:
		case CHANGE_DATA:
			sg_pcopy_from_buffer(scsi_sglist(cmd), scsi_sg_count(cmd), made->sector, SECTOR, made->at);
			break;
		case MAKE_GOOD:
			if (cmd->result || scsi_get_resid(cmd)) {
				acted++;
				cmd->result = 0;
				scsi_set_resid(cmd, 0);
			}
			break;
		case MAKE_ERROR:
			if (!cmd->result) {
				acted++;
				scsi_build_sense(cmd, 0, MEDIUM_ERROR, 0x0c, 0);
			}
			break;
		case SWALLOWED:
			swallowed = true;
			break;
		case GO_BEYOND:
			go_beyond(cmd);
			break;
		case CHANGE_LAST:
			change_last(cmd);
			break;
		}
		kfree(made);
	}
	spin_unlock_irqrestore(&changes_lock, flags);
	return swallowed;
}

static bool add_new(struct scsi_cmnd *cmd, enum change_kind kind)
{
	struct change *made = new_change(cmd, kind, 0);

	if (made)
		add_change(made);
	return false;
}

/* Have the driver send a command to another drive of its host; true when it has, false where there is none. */
static bool send_elsewhere(struct planted *p, struct scsi_cmnd *cmd)
{
	struct scsi_device *own = cmd->device, *sdev, *other = NULL;
	unsigned long flags;
	int result;

	spin_lock_irqsave(p->host->host_lock, flags);
	__shost_for_each_device(sdev, p->host)
		if (sdev != own && sdev->type == TYPE_DISK && sdev->sdev_state == SDEV_RUNNING)
			other = sdev;
	spin_unlock_irqrestore(p->host->host_lock, flags);
	if (!other)
		return false;
	/* completion must find the command's own drive again */
	local_irq_save(flags);
	cmd->device = other;
	result = p->driver->queuecommand(p->host, cmd);
	cmd->device = own;
	local_irq_restore(flags);
	if (!result)
		acted++;
	return !result;
}

static bool act_on(struct planted *p, struct scsi_cmnd *cmd)
{
	u64 address = address_of(cmd);
	struct change *made;
	u8 sector[SECTOR];
	uint number;

	switch (drawn_act) {
	case LOSE:
		return answer(cmd, 0);
	case UNTOUCHED:
		/* what the memory held before is what was "read" */
		return answer(cmd, 0);
	case ZERO_TAIL:
		change_sector(cmd, scsi_bufflen(cmd) - SECTOR, zeroes);
		return false;
	case ZERO_HEAD:
		change_sector(cmd, 0, zeroes);
		return false;
	case ZERO_AT_BOUNDARY:
		change_sector(cmd, boundary_at(cmd), zeroes);
		return false;
	case FLIP:
		if (is_data(cmd, false)) {
			memset(sector, 0x5a, SECTOR);
		} else {
			sg_pcopy_to_buffer(scsi_sglist(cmd), scsi_sg_count(cmd), sector, SECTOR, 0);
			sector[SECTOR - 3] ^= 0x10;
		}
		change_sector(cmd, 0, sector);
		return false;
	case HALF:
		if (sectors_of(cmd) < 2)
			return false;
		for (number = sectors_of(cmd) / 2; number < sectors_of(cmd); number++)
			change_sector(cmd, number * SECTOR, zeroes);
		return false;
	case LAST_SEGMENT:
		if (scsi_sg_count(cmd) < 2)
			return false;
		number = scsi_bufflen(cmd) - sg_last(scsi_sglist(cmd), scsi_sg_count(cmd))->length;
		for (number = ALIGN(number, SECTOR); number < scsi_bufflen(cmd); number += SECTOR)
			change_sector(cmd, number, zeroes);
		return false;
	case ELSEWHERE:
		return send_elsewhere(p, cmd);
	case FURTHER:
		acted++;
		if (cmd->cmnd[0] == UNMAP)
			change_range(cmd, by, 0);
		else
			set_address(cmd, address + by);
		return false;
	case CUT_ADDRESS:
		if (address >> bits) {
			acted++;
			set_address(cmd, address & ((1ULL << bits) - 1));
		}
		return false;
	case WRAP_ADDRESS:
		if (capacity && address >= capacity) {
			acted++;
			set_address(cmd, address - capacity);
		}
		return false;
	case NO_FUA:
		acted++;
		cmd->cmnd[1] &= ~8;
		return false;
	case ERROR:
		return add_new(cmd, MAKE_ERROR);
	case GOOD:
		return add_new(cmd, MAKE_GOOD);
	case OVERRUN:
		return add_new(cmd, GO_BEYOND);
	case LAST_BYTE:
		return add_new(cmd, CHANGE_LAST);
	case SCRIBBLE:
		/* what was sent is right; its memory is not when the write is completed */
		made = new_change(cmd, CHANGE_DATA, 0);
		if (!made)
			return false;
		acted++;
		sg_pcopy_to_buffer(scsi_sglist(cmd), scsi_sg_count(cmd), made->sector, SECTOR, 0);
		made->sector[SECTOR - 3] ^= 0x10;
		add_change(made);
		return false;
	case LEAK:
		acted++;
		/* the pointer is dropped: this is the leak */
		return !kmalloc(bytes, GFP_ATOMIC) && false;
	case SWALLOW:
		made = new_change(cmd, SWALLOWED, 0);
		if (!made)
			return false;
		acted++;
		add_change(made);
		/* the driver never sees it, and nobody completes it */
		return true;
	case NEIGHBOUR:
		if (p->has_sector)
			change_sector(cmd, scsi_bufflen(cmd) - SECTOR, p->sector);
		return false;
	case FORMER:
		if (is_data(cmd, false))
			return shadow_read(p, cmd) && answer(cmd, 0);
		number = shadow_at(p, blk_rq_pos(scsi_cmd_to_rq(cmd)), false);
		if (number < SHADOW_SECTORS && p->shadowed == cmd->device && p->held[number] == 2)
			change_sector(cmd, 0, p->former + number * SECTOR);
		return false;
	case MORE:
		acted++;
		add_blocks(cmd, 1);
		return false;
	case LESS:
		acted++;
		add_blocks(cmd, -1);
		/* a driver that tells the residual would have the rest sent again */
		return add_new(cmd, MAKE_GOOD);
	case LATE:
		acted++;
		mdelay(ms);
		return false;
	}
	return false;
}

static bool meddle_as_drawn(struct planted *p, struct scsi_cmnd *cmd)
{
	bool answered;

	if (drawn_act == FORMER && is_write(cmd))
		shadow_write(p, cmd);
	answered = is_drawn(p, cmd) && act_on(p, cmd);
	if (!answered && is_data(cmd, true)) {
		sg_pcopy_to_buffer(scsi_sglist(cmd), scsi_sg_count(cmd), p->sector, SECTOR, 0);
		p->has_sector = true;
	}
	return answered;
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
	case DRAWN:
		return meddle_as_drawn(p, cmd);
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
	if (planted_defect == DRAWN) {
		int result;

		finish_changes(cmd);
		atomic_inc(&p->under_way);
		if (meddle(p, cmd))
			return 0;
		result = p->driver->queuecommand(host, cmd);
		if (result) {
			atomic_dec(&p->under_way);
			finish_changes(cmd);
		}
		return result;
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
	if (planted_defect == DRAWN && finish_changes(cmd))
		return SUCCESS;
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

/*
 * A driver that completes a command with less data than was asked for says by how much; one says nothing. And what
 * the drawn defect does when a command is completed.
 */
static int __kprobes on_completion(struct kprobe *probe, struct pt_regs *regs)
{
	struct scsi_cmnd *cmd = (struct scsi_cmnd *)regs->di;

	if (!is_planted(cmd->device->host))
		return 0;
	if (planted_defect == DRAWN) {
		struct planted *p = planted_of(cmd->device->host);

		atomic_dec(&p->under_way);
		if (cmd->result)
			p->error_at = ktime_get_ns();
		finish_changes(cmd);
	} else if (scsi_get_resid(cmd)) {
		acted++;
		scsi_set_resid(cmd, 0);
	}
	return 0;
}

static struct kprobe completion = { .symbol_name = "scsi_done", .pre_handler = on_completion };

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
	if (planted_defect == STALE_AFTER_RECOVERY || (planted_defect == DRAWN && drawn_act == FORMER)) {
		p->last = vzalloc(SHADOW_SECTORS * SECTOR);
		p->former = vzalloc(SHADOW_SECTORS * SECTOR);
		p->held = vzalloc(SHADOW_SECTORS);
		p->tags = vzalloc(SHADOW_SECTORS * sizeof(*p->tags));
		if (!p->last || !p->former || !p->held || !p->tags) {
			vfree(p->last);
			vfree(p->former);
			vfree(p->held);
			vfree(p->tags);
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
	vfree(p->tags);
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
	if (planted_defect == DRAWN) {
		found = match_string(commands, ARRAY_SIZE(commands), on);
		problem = match_string(acts, ARRAY_SIZE(acts), act);
		if (found < 0 || problem < 0) {
			pr_err("storqual_planted: nothing acts on %s by %s\n", on, act);
			return -EINVAL;
		}
		drawn_on = found;
		drawn_act = problem;
	}
	if (planted_defect == WRONG_RESIDUAL || planted_defect == DRAWN) {
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
	if (planted_defect == WRONG_RESIDUAL || planted_defect == DRAWN)
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
