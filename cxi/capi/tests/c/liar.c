/* A kernel that lies, to be preloaded: between lie(SEED) and lie(0), commands to /dev/cxiN get answers
 * that are random, too long, too short or absurd, and device memory is other memory or none. What the
 * driver really does is as it would be, or nothing at all. The same seed tells the same lies. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const struct op { int release, number; const char *name; int length, response, room; const char *pad; } ops[] = {
#include "ops.h"
};

/* The development branch, whose table has all commands. */
#define RELEASE 4
#define ROOM 32		/* how much longer than it should be an answer may be */
#define SVC_LIST_GET 27
#define SVC_RSRC_LIST_GET 49

static uint64_t state;

void lie(unsigned int seed)
{
	state = seed ? seed * 0x9e3779b97f4a7c15u | 1 : 0;
}

static uint32_t any(uint32_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	state += !state;
	return (uint32_t)(state >> 32) % below;
}

static void scribble(unsigned char *to, size_t length)
{
	static const unsigned char fixed[] = { 0, 0xff, 0x80, 1 };
	uint32_t how = any(8);

	for (size_t i = 0; i < length; i++)
		if (how < 4)
			to[i] = fixed[how];
		else if (how < 6 || any(8) == 0)
			to[i] = (unsigned char)any(256);
}

static int is_nic(int fd)
{
	char link[32], path[256];
	ssize_t length;

	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	length = readlink(link, path, sizeof path - 1);
	if (length <= 0)
		return 0;
	path[length] = 0;
	return strstr(path, "/nodes/cxi") != NULL;
}

static const struct op *find(uint32_t number)
{
	for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
		if (ops[i].release == RELEASE && (uint32_t)ops[i].number == number)
			return &ops[i];
	return NULL;
}

/* The answers of lists: a count, and elements for as many as the caller has asked for. */
static void scribble_list(const unsigned char *command, uint32_t number)
{
	static const uint32_t counts[] = { 0, 1, 3, 70, 1000, 0x7fffffff, 0xffffffff };
	size_t element = number == SVC_LIST_GET ? 68 : 24;
	uint32_t asked, count = counts[any(7)];
	unsigned char *response, *list;

	memcpy(&response, command + 8, sizeof response);
	memcpy(&asked, command + 16, sizeof asked);
	memcpy(&list, command + 24, sizeof list);
	if (response)
		memcpy(response, &count, sizeof count);
	if (list)
		scribble(list, (count < asked ? count : asked) * element);
}

ssize_t write(int fd, const void *buffer, size_t length)
{
	static ssize_t (*real)(int, const void *, size_t);
	static const int errors[] = { EPERM, ENOENT, EINTR, EIO, EAGAIN, ENOMEM, EFAULT, EBUSY, EINVAL, ENOSPC,
		EOVERFLOW, EKEYREVOKED, ENODEV, 133, 4095 };
	const unsigned char *command = buffer;
	const struct op *op;
	unsigned char *response = NULL;
	uint32_t number, kind;
	ssize_t result;

	if (!real)
		real = (ssize_t (*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
	if (!state || length < 4 || !is_nic(fd))
		return real(fd, buffer, length);
	memcpy(&number, command, sizeof number);
	op = find(number);
	kind = any(10);
	if (kind == 0 || !op)
		return real(fd, buffer, length);
	if (kind == 1) {
		errno = errors[any(sizeof errors / sizeof *errors)];
		return -1;
	}
	/* Done or not, a command counts as done from here on. */
	result = kind == 2 ? (ssize_t)length : real(fd, buffer, length);
	if (result < 0)
		result = (ssize_t)length;
	if (number == SVC_LIST_GET || number == SVC_RSRC_LIST_GET) {
		scribble_list(command, number);
		return result;
	}
	if (kind == 3)
		return any(4) ? (ssize_t)any((uint32_t)length + 8) : 1 << 30;
	if (op->response >= 0 && (size_t)op->response + sizeof response <= length)
		memcpy(&response, command + op->response, sizeof response);
	if (response && op->room)
		scribble(response, (size_t)op->room + (kind == 4 ? any(ROOM) : 0));
	return result;
}

/* Real device memory would be at other places than the answers say. */
static void *map_something(size_t length)
{
	static const int errors[] = { EINVAL, ENODEV, ENOMEM, EIO, EACCES };
	void *(*real)(void *, size_t, int, int, int, off_t) =
		(void *(*)(void *, size_t, int, int, int, off_t))dlsym(RTLD_NEXT, "mmap");

	if (length > 1 << 24 || any(3) == 0) {
		errno = errors[any(5)];
		return MAP_FAILED;
	}
	return real(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

void *mmap(void *at, size_t length, int protection, int flags, int fd, off_t offset)
{
	static void *(*real)(void *, size_t, int, int, int, off_t);

	if (!real)
		real = (void *(*)(void *, size_t, int, int, int, off_t))dlsym(RTLD_NEXT, "mmap");
	if (state && fd >= 0 && is_nic(fd))
		return map_something(length);
	return real(at, length, protection, flags, fd, offset);
}

void *mmap64(void *at, size_t length, int protection, int flags, int fd, off_t offset)
{
	return mmap(at, length, protection, flags, fd, offset);
}
