/* fakecxi LOG PROGRAM ARGS...
 *
 * Runs PROGRAM under ptrace (x86_64 Linux only) and plays the kernel side of /dev/cxiN:
 * write(2) to such a file never reaches the file; the command is logged and answered from a
 * table or from what the program asked for. Everything between "begin" and "end" is logged as
 * JSON, one object per case. The program steers with write(2) to file descriptor 777, which
 * fails harmlessly (EBADF) when nothing traces it.
 *
 * Only files whose path starts with /dev/cxi are answered; all else runs as it is. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define CTL 777
#define MAXA 64

struct op { int rel, nr; const char *name; int len, resp, resplen; const char *pad; };
static const struct op ops[] = {
#include "ops.h"
};
static int release = 4;
static const struct op *find(unsigned nr)
{
	for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
		if ((unsigned)ops[i].nr == nr && ops[i].rel == release)
			return &ops[i];
	return NULL;
}

/* default answers: opcode, hex of the response */
static const struct { int nr; const char *hex; } defaults[] = {
#include "answers.h"
};

struct answer { int op; char kind; long a; char hex[4096]; bool used; };
static struct answer q[MAXA];
static int nq;
static int map_n, map_e, unmap_n, unmap_e, adv_n, adv_e;

static FILE *lg;
static bool rec;
static int nev;
static char casename[128];

/* tracked descriptors and mappings of one process family (descriptors by number) */
static char *fdpath[1024];
static bool fdnew[1024];
static struct { unsigned long a, l; unsigned long off; bool on; } maps[256];

struct proc { pid_t pid; bool in; long nr; bool skip; long ret; char path[512]; struct user_regs_struct r; };
static struct proc procs[64];
static struct proc *get(pid_t p)
{
	for (int i = 0; i < 64; i++) if (procs[i].pid == p) return &procs[i];
	for (int i = 0; i < 64; i++) if (!procs[i].pid) { memset(&procs[i], 0, sizeof procs[i]); procs[i].pid = p; return &procs[i]; }
	abort();
}

static long rd(pid_t p, unsigned long a, void *b, size_t n)
{
	struct iovec l = { b, n }, r = { (void *)a, n };
	return process_vm_readv(p, &l, 1, &r, 1, 0);
}
static long wr(pid_t p, unsigned long a, const void *b, size_t n)
{
	struct iovec l = { (void *)b, n }, r = { (void *)a, n };
	return process_vm_writev(p, &l, 1, &r, 1, 0);
}
static void rdstr(pid_t p, unsigned long a, char *b, size_t n)
{
	size_t i = 0;
	while (i + 1 < n) {
		char c;
		if (rd(p, a + i, &c, 1) != 1 || !c) break;
		b[i++] = c;
	}
	b[i] = 0;
}
static size_t unhex(const char *h, unsigned char *o)
{
	size_t n = 0;
	while (h[0] && h[1] && sscanf(h, "%2hhx", &o[n]) == 1) { n++; h += 2; }
	return n;
}
static void ev(const char *fmt, ...)
{
	if (!rec) return;
	fprintf(lg, "%s", nev++ ? ", " : "");
	va_list ap; va_start(ap, fmt); vfprintf(lg, fmt, ap); va_end(ap);
}
static void esc(char *o, size_t n, const char *s, size_t l)
{
	size_t k = 0;
	for (size_t i = 0; i < l && k + 8 < n; i++) {
		unsigned char c = s[i];
		if (c == '"' || c == '\\') { o[k++] = '\\'; o[k++] = c; }
		else if (c == '\n') { o[k++] = '\\'; o[k++] = 'n'; }
		else if (c < 32 || c > 126) k += sprintf(o + k, "\\u%04x", c);
		else o[k++] = c;
	}
	o[k] = 0;
}
static const char *ename(int e)
{
	const char *s = strerrorname_np(e);
	return s ? s : "?";
}
static bool interesting(const char *p)
{
	return !strncmp(p, "/dev/cxi", 8) || !strncmp(p, "/sys/class/cxi", 14) || !strncmp(p, "/sys/devices/fake", 17) || strstr(p, "/smaps");
}
static void normpath(char *p)
{
	/* /proc/<pid>/smaps -> /proc/PID/smaps */
	int pid;
	if (sscanf(p, "/proc/%d/smaps", &pid) == 1 || !strcmp(p, "/proc/self/smaps")) strcpy(p, "/proc/PID/smaps");
}

static void control(pid_t pid, unsigned long a, size_t n)
{
	static char b[16384];
	if (n >= sizeof b) n = sizeof b - 1;
	rd(pid, a, b, n); b[n] = 0;
	char *s = b;
	struct answer *x;
	switch (*s) {
	case 'B':
		rec = true; nev = 0;
		snprintf(casename, sizeof casename, "%.120s", s + 2);
		memset(fdnew, 0, sizeof fdnew);
		fprintf(lg, "{\"name\": \"%s\", \"events\": [", casename);
		break;
	case 'E': {
		rec = false;
		fprintf(lg, "]");
		int k = 0;
		for (int i = 0; i < 1024; i++) if (fdpath[i] && fdnew[i]) {
			fprintf(lg, "%s\"%s\"", k++ ? ", " : ", \"left_open\": [", fdpath[i]);
			fdnew[i] = false;
		}
		if (k) fprintf(lg, "]");
		fprintf(lg, "}\n"); fflush(lg);
		break;
	}
	case 'R': nq = 0; map_n = unmap_n = adv_n = 0; break;
	case 'M': sscanf(s + 1, "%d %d", &map_n, &map_e); break;
	case 'U': sscanf(s + 1, "%d %d", &unmap_n, &unmap_e); break;
	case 'V': sscanf(s + 1, "%d %d", &adv_n, &adv_e); break;
	case 'A':
		if (nq >= MAXA) break;
		x = &q[nq++]; memset(x, 0, sizeof *x);
		sscanf(s + 1, "%d %c", &x->op, &x->kind);
		if (x->kind == 'e' || x->kind == 's') sscanf(s + 1, "%*d %*c %ld", &x->a);
		else if (x->kind == 'd') sscanf(s + 1, "%*d %*c %4095s", x->hex);
		else if (x->kind == 'f' || x->kind == 'l') sscanf(s + 1, "%*d %*c %ld %4095s", &x->a, x->hex);
		break;
	}
}

/* returns what write(2) returns */
static long command(pid_t pid, unsigned long a, size_t n)
{
	unsigned char c[4096]; char hex[8200];
	uint32_t nr = 0; uint64_t resp = 0, ptr = 0; uint32_t cnt = 0;
	if (n > sizeof c) n = sizeof c;
	if (rd(pid, a, c, n) != (long)n) return -EFAULT;
	if (n >= 4) memcpy(&nr, c, 4);
	const struct op *o = find(nr);
	/* text of the command: pointers as pp, padding as .. */
	for (size_t i = 0; i < n; i++) sprintf(hex + 2 * i, "%02x", c[i]);
	hex[2 * n] = 0;
	if (o) {
		int off, sz; const char *p = o->pad;
		while (sscanf(p, "%d,%d", &off, &sz) == 2) {
			for (int i = off; i < off + sz && (size_t)i < n; i++) memset(hex + 2 * i, '.', 2);
			p = strchr(p, ';'); if (!p) break; p++;
		}
		if (o->resp >= 0 && n >= (size_t)o->resp + 8) {
			memcpy(&resp, c + o->resp, 8);
			if (o->resplen == 0 && (nr == 20)) memset(hex + 16, '?', 16);	/* never set by the library */
			else if (resp) memset(hex + 2 * o->resp, 'p', 16);
		}
		if ((nr == 27 || nr == 49) && n >= 32) {
			memcpy(&cnt, c + 16, 4); memcpy(&ptr, c + 24, 8);
			if (ptr) memset(hex + 48, 'p', 16);
		}
	}
	struct answer *x = NULL;
	for (int i = 0; i < nq; i++) if (!q[i].used && q[i].op == (int)nr) { x = &q[i]; x->used = true; break; }
	unsigned char d[8192]; size_t dl = 0; long ret = n; const char *dh = "";
	if (o && o->len != (int)n && n != 0) {
		/* the driver compares lengths exactly */
		ret = -EINVAL;
	} else if (x && x->kind == 'e') ret = -x->a;
	else if (x && x->kind == 's') ret = x->a;
	else if (!o) ret = -EINVAL;
	else if (nr == 27 || nr == 49) {
		/* lists: count in the response, elements only where there is room */
		long num = 2; const char *el = NULL;
		if (x && x->kind == 'l') { num = x->a; el = x->hex; }
		else for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++) if (defaults[i].nr == (int)nr) el = defaults[i].hex;
		uint32_t v = num;
		if (resp) wr(pid, resp, &v, 4);
		if (cnt && (long)cnt >= num && ptr && el) { dl = unhex(el, d); size_t max = cnt * (nr == 27 ? 68 : 24); if (dl > max) dl = max; wr(pid, ptr, d, dl); }
		ev("{\"write\": \"%s\", \"len\": %zu, \"bytes\": \"%s\", \"answer\": {\"count\": %ld, \"elements\": \"%s\"}, \"ret\": %ld}", o->name, n, hex, num, cnt && (long)cnt >= num && el ? el : "", ret);
		return ret;
	} else {
		if (x && (x->kind == 'd')) dh = x->hex;
		else if (x && x->kind == 'f') { dh = x->hex; ret = -x->a; }
		else for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++) if (defaults[i].nr == (int)nr) dh = defaults[i].hex;
		dl = unhex(dh, d);
		if (dl && (!resp || wr(pid, resp, d, dl) != (long)dl)) ret = -EFAULT;
	}
	ev("{\"write\": \"%s\", \"len\": %zu, \"bytes\": \"%s\", \"answer\": {\"ret\": %s%s%s", o ? o->name : "?", n, hex,
	   ret < 0 ? "\"-" : "", ret < 0 ? ename(-ret) : "", ret < 0 ? "\"" : "");
	if (ret >= 0 && rec) fprintf(lg, "%ld", ret);
	if (dl && rec) fprintf(lg, ", \"response\": \"%s\"", dh);
	if (rec) fprintf(lg, "}}");
	return ret;
}

static bool isdev(pid_t pid, int fd, char *out, size_t n)
{
	char l[64]; snprintf(l, sizeof l, "/proc/%d/fd/%d", pid, fd);
	ssize_t k = readlink(l, out, n - 1);
	if (k < 0) return false;
	out[k] = 0;
	return !strncmp(out, "/dev/cxi", 8);
}

static void entry(struct proc *p)
{
	struct user_regs_struct *r = &p->r;
	ptrace(PTRACE_GETREGS, p->pid, 0, r);
	p->nr = r->orig_rax; p->skip = false; p->path[0] = 0;
	char buf[512], b2[2200];
	switch (p->nr) {
	case SYS_write:
		if ((int)r->rdi == CTL) { control(p->pid, r->rsi, r->rdx); p->skip = true; p->ret = r->rdx; break; }
		if (isdev(p->pid, r->rdi, buf, sizeof buf)) { p->ret = command(p->pid, r->rsi, r->rdx); p->skip = true; break; }
		if ((int)r->rdi == 2 && rec) {
			char t[1024]; size_t n = r->rdx < sizeof t ? r->rdx : sizeof t;
			rd(p->pid, r->rsi, t, n); esc(b2, sizeof b2, t, n);
			ev("{\"stderr\": \"%s\"}", b2);
		}
		break;
	case SYS_open: rdstr(p->pid, r->rdi, p->path, sizeof p->path); break;
	case SYS_openat: case SYS_newfstatat: case SYS_statx: case SYS_faccessat: case 439 /* faccessat2 */:
		rdstr(p->pid, r->rsi, p->path, sizeof p->path); break;
	case SYS_access: case SYS_stat: rdstr(p->pid, r->rdi, p->path, sizeof p->path); break;
	case SYS_mmap:
		if ((int)r->r8 >= 0 && isdev(p->pid, r->r8, p->path, sizeof p->path)) {
			if (map_n && --map_n == 0) { p->skip = true; p->ret = -map_e; }
		} else p->path[0] = 0;
		break;
	case SYS_munmap:
		for (int i = 0; i < 256; i++) if (maps[i].on && maps[i].a == r->rdi) {
			if (unmap_n && --unmap_n == 0) { p->skip = true; p->ret = -unmap_e; }
			break;
		}
		break;
	case SYS_madvise:
		if (rec && ((int)r->rdx == 10 || (int)r->rdx == 11) && adv_n && --adv_n == 0) { p->skip = true; p->ret = -adv_e; }
		break;
	}
	if (p->skip) { r->orig_rax = -1; ptrace(PTRACE_SETREGS, p->pid, 0, r); }
}

static void leave(struct proc *p)
{
	struct user_regs_struct r;
	ptrace(PTRACE_GETREGS, p->pid, 0, &r);
	if (p->skip) { r.rax = p->ret; ptrace(PTRACE_SETREGS, p->pid, 0, &r); }
	long ret = r.rax; struct user_regs_struct *a = &p->r;
	char b[600];
	switch (p->nr) {
	case SYS_open: case SYS_openat: {
		if (!interesting(p->path)) break;
		normpath(p->path);
		long fl = p->nr == SYS_open ? a->rsi : a->rdx;
		const char *m = (fl & O_ACCMODE) == O_RDWR ? "O_RDWR" : (fl & O_ACCMODE) == O_WRONLY ? "O_WRONLY" : "O_RDONLY";
		if (fl & O_DIRECTORY) break;	/* reading a folder */
		if (ret >= 0 && ret < 1024) { free(fdpath[ret]); fdpath[ret] = strdup(p->path); fdnew[ret] = rec; }
		snprintf(b, sizeof b, "%s%s", m, fl & O_CLOEXEC ? "|O_CLOEXEC" : "");
		if (ret >= 0) ev("{\"open\": \"%s\", \"flags\": \"%s\"}", p->path, b);
		else ev("{\"open\": \"%s\", \"flags\": \"%s\", \"error\": \"%s\"}", p->path, b, ename(-ret));
		break;
	}
	case SYS_access: case SYS_faccessat: case 439:
		if (interesting(p->path)) ev("{\"access\": \"%s\"%s%s%s}", p->path, ret ? ", \"error\": \"" : "", ret ? ename(-ret) : "", ret ? "\"" : "");
		break;
	case SYS_close:
		if (a->rdi < 1024 && fdpath[a->rdi]) {
			if (ret == 0) { ev("{\"close\": \"%s\"}", fdpath[a->rdi]); free(fdpath[a->rdi]); fdpath[a->rdi] = NULL; fdnew[a->rdi] = false; }
		}
		break;
	case SYS_pread64:
		if (a->rdi < 1024 && fdpath[a->rdi]) ev("{\"pread\": \"%s\", \"count\": %ld, \"offset\": %ld}", fdpath[a->rdi], (long)a->rdx, (long)a->r10);
		break;
	case SYS_mmap:
		if (p->path[0]) {
			char pr[32] = "", *s = pr;
			if (a->rdx & 1) s += sprintf(s, "READ"); if (a->rdx & 2) s += sprintf(s, "%sWRITE", s == pr ? "" : "|");
			const char *fl = (a->r10 & 15) == 1 ? "MAP_SHARED" : (a->r10 & 15) == 3 ? "MAP_SHARED_VALIDATE" : "MAP_PRIVATE";
			if ((unsigned long)ret < -4096UL) {
				for (int i = 0; i < 256; i++) if (!maps[i].on) { maps[i].on = true; maps[i].a = ret; maps[i].l = a->rsi; maps[i].off = a->r9; break; }
				ev("{\"mmap\": \"%s\", \"offset\": %lu, \"length\": %lu, \"prot\": \"%s\", \"flags\": \"%s\"}", p->path, (unsigned long)a->r9, (unsigned long)a->rsi, pr, fl);
			} else ev("{\"mmap\": \"%s\", \"offset\": %lu, \"length\": %lu, \"prot\": \"%s\", \"flags\": \"%s\", \"error\": \"%s\"}", p->path, (unsigned long)a->r9, (unsigned long)a->rsi, pr, fl, ename(-ret));
		}
		break;
	case SYS_munmap:
		for (int i = 0; i < 256; i++) if (maps[i].on && maps[i].a == a->rdi) {
			if (ret == 0) { maps[i].on = false; ev("{\"munmap_of_offset\": %lu, \"length\": %lu}", maps[i].off, (unsigned long)a->rsi); }
			else ev("{\"munmap_of_offset\": %lu, \"length\": %lu, \"error\": \"%s\"}", maps[i].off, (unsigned long)a->rsi, ename(-ret));
			break;
		}
		break;
	case SYS_madvise:
		if ((int)a->rdx == 10 || (int)a->rdx == 11) {
			if (a->rdi >= 0x500000000000 && a->rdi < 0x510000000000) snprintf(b, sizeof b, "\"0x%lx\"", (unsigned long)a->rdi);
			else snprintf(b, sizeof b, "\"(memory of the library)\"");
			ev("{\"madvise\": \"%s\", \"addr\": %s, \"length\": %lu%s%s%s}", a->rdx == 10 ? "MADV_DONTFORK" : "MADV_DOFORK", b, (unsigned long)a->rsi, ret ? ", \"error\": \"" : "", ret ? ename(-ret) : "", ret ? "\"" : "");
		}
		break;
	case SYS_socket:
		if (a->rdi == 16) ev("{\"netlink_socket\": %ld%s%s%s}", (long)a->rdx, ret < 0 ? ", \"error\": \"" : "", ret < 0 ? ename(-ret) : "", ret < 0 ? "\"" : "");
		break;
	}
}

int main(int argc, char **argv)
{
	/* the kernel side of which release: 12.0, 13.0, 13.1, 14.0 or main */
	static const char *const names[] = { "12.0", "13.0", "13.1", "14.0", "main" };
	const char *e = getenv("FAKECXI_RELEASE");
	for (int i = 0; e && i < 5; i++) if (!strcmp(e, names[i])) release = i;
	if (argc < 3) { fprintf(stderr, "usage: fakecxi LOG PROGRAM ARGS...\n"); return 125; }
	lg = fopen(argv[1], "w");
	if (!lg) { perror(argv[1]); return 125; }
	fcntl(fileno(lg), F_SETFD, FD_CLOEXEC);
	pid_t c = fork();
	if (!c) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		execvp(argv[2], argv + 2);
		perror(argv[2]); _exit(127);
	}
	int st; waitpid(c, &st, 0);
	ptrace(PTRACE_SETOPTIONS, c, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL);
	get(c);
	ptrace(PTRACE_SYSCALL, c, 0, 0);
	int rc = 0;
	for (;;) {
		pid_t p = waitpid(-1, &st, __WALL);
		if (p < 0) break;
		struct proc *x = get(p);
		if (WIFEXITED(st) || WIFSIGNALED(st)) {
			x->pid = 0;
			if (p == c) rc = WIFEXITED(st) ? WEXITSTATUS(st) : 128 + WTERMSIG(st);
			continue;
		}
		int sig = WSTOPSIG(st), deliver = 0;
		if (sig == (SIGTRAP | 0x80)) { if (!x->in) { x->in = true; entry(x); } else { x->in = false; leave(x); } }
		else if (sig == SIGTRAP && (st >> 16)) { if ((st >> 16) == PTRACE_EVENT_EXEC) x->in = true; }
		else if (sig == SIGSTOP) deliver = 0;
		else if (sig != SIGTRAP) deliver = sig;
		ptrace(PTRACE_SYSCALL, p, 0, deliver);
	}
	fclose(lg);
	return rc;
}
