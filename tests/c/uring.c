/*
 * Destroys a service that does not exist through io_uring, as root and after setuid, on a thread of
 * the kernel that was made while the process was root. Prints the two errnos; ends with 77 if the
 * kernel has no io_uring.
 *
 * usage: uring DEVICE UID
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { OP_SVC_DESTROY = 29 };

struct by_id { uint32_t op, id; };

static int ring;
static struct io_uring_params params;
static char *rings;
static struct io_uring_sqe *entries;

/* Submits a write that a thread of the kernel makes, and returns its result. */
static int written(int device, const void *bytes, unsigned length)
{
	uint32_t *tail = (uint32_t *)(rings + params.sq_off.tail);
	uint32_t *array = (uint32_t *)(rings + params.sq_off.array);
	uint32_t *head = (uint32_t *)(rings + params.cq_off.head);
	uint32_t mask = *(uint32_t *)(rings + params.sq_off.ring_mask);
	uint32_t cq_mask = *(uint32_t *)(rings + params.cq_off.ring_mask);
	struct io_uring_cqe *done = (struct io_uring_cqe *)(rings + params.cq_off.cqes);
	uint32_t slot = *tail & mask;
	int result;

	memset(&entries[slot], 0, sizeof(entries[slot]));
	entries[slot].opcode = IORING_OP_WRITE;
	entries[slot].flags = IOSQE_ASYNC;
	entries[slot].fd = device;
	entries[slot].addr = (uintptr_t)bytes;
	entries[slot].len = length;
	array[slot] = slot;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	if (syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) < 0) {
		perror("io_uring_enter");
		exit(1);
	}
	result = done[*head & cq_mask].res;
	__atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
	return result;
}

int main(int argc, char **argv)
{
	struct by_id bytes[2] = {{OP_SVC_DESTROY, 4711}};
	size_t size;
	int device, before, after;

	if (argc != 3)
		return 2;
	device = open(argv[1], O_RDWR);
	ring = syscall(SYS_io_uring_setup, 4, &params);
	if (ring < 0)
		return 77;
	size = params.sq_off.array + params.sq_entries * sizeof(uint32_t);
	if (size < params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe))
		size = params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe);
	rings = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
	entries = mmap(NULL, params.sq_entries * sizeof(*entries), PROT_READ | PROT_WRITE,
		       MAP_SHARED, ring, IORING_OFF_SQES);
	if (device < 0 || rings == MAP_FAILED || entries == MAP_FAILED) {
		perror("prepare");
		return 1;
	}
	before = written(device, bytes, sizeof(bytes[0]));
	if (setuid(atoi(argv[2])) != 0) {
		perror("setuid");
		return 1;
	}
	after = written(device, bytes, sizeof(bytes[0]));
	printf("%d %d\n", -before == EINVAL, -after == EPERM);
	return 0;
}
