/*
 * Allocates, lists, fails and destroys services of a CXI device with nothing but open(2),
 * write(2) and close(2). Prints "ok" and ends with 0 if all of it behaves as the driver does.
 *
 * usage: service DEVICE LNI_ALLOC_LENGTH (24 on the development branch, 16 before)
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	OP_LNI_ALLOC = 1,
	OP_LNI_FREE = 2,
	OP_SVC_LIST_GET = 27,
	OP_SVC_ALLOC = 28,
	OP_SVC_DESTROY = 29,
	OP_SVC_GET = 45,
	OP_DEV_INFO_GET = 52,
};

enum { RESTRICTED_MEMBERS = 1, RESTRICTED_VNIS = 2, RESOURCE_LIMITS = 8 };
enum { MEMBER_UID = 1 };

struct limits { uint16_t max, res; };
struct member { uint32_t id, type; };

struct svc_desc {
	uint8_t flags;
	uint8_t num_vld_vnis;
	uint16_t vnis[4];
	uint8_t tcs[5];
	struct member members[2];
	struct limits limits[8];
	uint32_t svc_id;
};

struct svc_alloc { uint32_t op; void *resp; struct svc_desc desc; };
struct svc_alloc_resp { uint32_t svc_id; uint16_t avail[8]; uint8_t no_pools[3]; };
struct by_id { uint32_t op, id; };
struct svc_get { uint32_t op; void *resp; uint32_t svc_id; };
struct svc_list { uint32_t op; void *resp; uint32_t count; void *list; };
struct lni_alloc_old { uint32_t op, svc_id; void *resp; };
struct lni_alloc_new { uint32_t op; void *resp; uint32_t svc_id; };
struct dev_info { uint32_t op; void *resp; };

_Static_assert(sizeof(struct svc_desc) == 68, "service");
_Static_assert(sizeof(struct svc_alloc) == 88, "SVC_ALLOC");
_Static_assert(sizeof(struct svc_alloc_resp) == 24, "response of SVC_ALLOC");
_Static_assert(sizeof(struct svc_get) == 24, "SVC_GET");
_Static_assert(sizeof(struct svc_list) == 32, "SVC_LIST_GET");

static int device;

#define CHECK(condition)                                                           \
	do {                                                                       \
		if (!(condition)) {                                                \
			fprintf(stderr, "%s:%d: %s (errno %d: %s)\n", __FILE__,    \
				__LINE__, #condition, errno, strerror(errno));     \
			exit(1);                                                   \
		}                                                                  \
	} while (0)

/* The development branch reads 16 bytes of every command, whatever its length. */
static int command(const void *bytes, size_t length)
{
	char buffer[128] = {0};
	ssize_t written;

	memcpy(buffer, bytes, length);
	errno = 0;
	written = write(device, buffer, length);
	if (written < 0)
		return errno;
	return written == (ssize_t)length ? 0 : -1;
}

static int by_id(uint32_t op, uint32_t id)
{
	struct by_id bytes = {op, id};

	return command(&bytes, sizeof(bytes));
}

static int allocate(struct svc_desc desc, void *response)
{
	struct svc_alloc bytes = {.op = OP_SVC_ALLOC, .resp = response, .desc = desc};

	return command(&bytes, sizeof(bytes));
}

static int list(uint32_t room, struct svc_desc *services, uint32_t *count)
{
	struct svc_list bytes = {OP_SVC_LIST_GET, count, room, services};

	return command(&bytes, sizeof(bytes));
}

static int lni(size_t length, uint32_t service, uint32_t *handle)
{
	struct lni_alloc_old old = {OP_LNI_ALLOC, service, handle};
	struct lni_alloc_new new = {OP_LNI_ALLOC, handle, service};

	return length == sizeof(old) ? command(&old, length) : command(&new, sizeof(new));
}

int main(int argc, char **argv)
{
	struct svc_desc wanted = {
		.flags = RESTRICTED_MEMBERS | RESTRICTED_VNIS | RESOURCE_LIMITS,
		.num_vld_vnis = 1,
		.vnis = {1234},
		.tcs = {1},
		.members = {{geteuid(), MEMBER_UID}},
		.limits = {[1] = {.max = 16, .res = 4}},
	};
	struct svc_alloc_resp answer;
	struct svc_desc services[32], got;
	unsigned char info[256];
	uint32_t before, after, handle, count, id;
	char *page;
	void *unwritable;
	void *volatile nowhere;
	size_t lni_length;
	int copy;

	if (argc != 3) {
		fprintf(stderr, "usage: service DEVICE LNI_ALLOC_LENGTH\n");
		return 2;
	}
	lni_length = strtoul(argv[2], NULL, 10);
	device = open(argv[1], O_RDWR | O_CLOEXEC);
	CHECK(device >= 0);
	unwritable = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(unwritable != MAP_FAILED);

	/* A response of exactly its length: what lies behind stays as it is. */
	memset(info, 0xa5, sizeof(info));
	CHECK(command(&(struct dev_info){OP_DEV_INFO_GET, info}, 16) == 0);
	CHECK(info[28] == 0x71 && info[29] == 0x03);
	for (size_t at = 120; at < sizeof(info); at++)
		CHECK(info[at] == 0xa5);

	/* Allocate, and find it in the list and by its id. */
	CHECK(list(0, NULL, &before) == 0);
	memset(&answer, 0xff, sizeof(answer));
	CHECK(allocate(wanted, &answer) == 0);
	id = answer.svc_id;
	CHECK(id > 1 && id != UINT32_MAX);
	CHECK(list(0, NULL, &after) == 0 && after == before + 1);
	count = 0;
	CHECK(list(32, services, &count) == 0 && count == after);
	CHECK(services[0].svc_id == 1 && services[count - 1].svc_id == id);
	CHECK(command(&(struct svc_get){OP_SVC_GET, &got, id}, 24) == 0);
	CHECK(got.svc_id == id && got.vnis[0] == 1234 && got.num_vld_vnis == 1);
	CHECK(got.limits[1].max == 16 && got.limits[1].res == 4);

	/* What is in use cannot be destroyed; closing another file does not end it. */
	CHECK(lni(lni_length, id, &handle) == 0);
	copy = dup(device);
	CHECK(copy >= 0 && close(copy) == 0);
	CHECK(by_id(OP_SVC_DESTROY, id) == EBUSY);
	CHECK(by_id(OP_LNI_FREE, handle) == 0);

	/* Closing the file frees the LNI, at once. */
	CHECK(lni(lni_length, id, &handle) == 0);
	CHECK(close(device) == 0);
	device = open(argv[1], O_RDWR | O_CLOEXEC);
	CHECK(device >= 0);
	CHECK(by_id(OP_LNI_FREE, handle) == EINVAL);
	CHECK(by_id(OP_SVC_DESTROY, id) == 0);
	CHECK(by_id(OP_SVC_DESTROY, id) == EINVAL);

	/* Refusals. SVC_ALLOC explains itself in the response. */
	wanted.vnis[0] = 0;
	memset(&answer, 0xff, sizeof(answer));
	CHECK(allocate(wanted, &answer) == EINVAL && answer.svc_id == 0);
	wanted.vnis[0] = 1234;
	wanted.limits[1] = (struct limits){.max = 1024, .res = 1024};
	memset(&answer, 0xff, sizeof(answer));
	CHECK(allocate(wanted, &answer) == 0);
	id = answer.svc_id;
	wanted.vnis[0] = 1235;
	CHECK(allocate(wanted, &answer) == ENOSPC);
	CHECK(answer.svc_id == 0 && answer.avail[1] == 0);
	CHECK(by_id(OP_SVC_DESTROY, id) == 0);

	/* Wrong commands. */
	CHECK(command(&(struct by_id){9999, 0}, 8) == EINVAL);
	CHECK(command(&(struct by_id){0, 0}, 8) == EINVAL);
	CHECK(command(&(struct by_id){55, 0}, 8) == EOPNOTSUPP);
	CHECK(command(&(struct by_id){OP_SVC_DESTROY, 1}, 7) == EINVAL);
	CHECK(command(&(struct by_id){OP_SVC_DESTROY, 1}, 4) == EINVAL);
	CHECK(command("\1\0", 2) == EINVAL);
	nowhere = (void *)16;
	CHECK(write(device, nowhere, 8) == -1 && errno == EFAULT);
	CHECK(read(device, info, 1) == -1 && errno == EINVAL);

	/* Behind the last page there is nothing to read: only the development branch minds. */
	page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(page != MAP_FAILED && munmap(page + 4096, 4096) == 0);
	memcpy(page + 4088, &(struct by_id){OP_SVC_DESTROY, 1}, 8);
	CHECK(write(device, page + 4088, 8) == -1);
	CHECK(errno == (lni_length == 24 ? EFAULT : EINVAL));
	memcpy(page + 4080, &(struct by_id){OP_SVC_DESTROY, 1}, 8);
	CHECK(write(device, page + 4080, 8) == -1 && errno == EINVAL);

	/* Bad addresses are noticed after the work was done. */
	wanted.limits[1] = (struct limits){0, 0};
	CHECK(list(0, NULL, &before) == 0);
	CHECK(allocate(wanted, nowhere) == EFAULT);
	wanted.vnis[0] = 1236;
	CHECK(allocate(wanted, unwritable) == EFAULT);
	count = 0;
	CHECK(list(32, services, &count) == 0 && count == before + 2);
	CHECK(list(32, unwritable, &count) == EFAULT);
	CHECK(by_id(OP_SVC_DESTROY, services[count - 1].svc_id) == 0);
	CHECK(by_id(OP_SVC_DESTROY, services[count - 2].svc_id) == 0);
	CHECK(list(0, NULL, &after) == 0 && after == before);

	puts("ok");
	return 0;
}
