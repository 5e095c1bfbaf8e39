#include "tracer/privileges.h"

#include "base/proc.h"
#include "tracer/tracer.h"

#include <stdio.h>

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>

/* What the file says a process that executes it should have. */
static bool has_lost_rights(pid_t pid, const char *exe)
{
	const char *const key = "CapPrm:";
	uint64_t capabilities = 0;
	struct statvfs fs;
	struct stat own;
	struct stat st;
	char path[64];

	if (stat(exe, &st) < 0)
		return false;
	bool set_ids = st.st_mode & (S_ISUID | S_ISGID);
	bool file_capabilities = getxattr(exe, "security.capability", NULL, 0) > 0;
	if (!set_ids && !file_capabilities)
		return false;
	/* There the kernel would not have given them without us either. */
	if (statvfs(exe, &fs) == 0 && (fs.f_flag & ST_NOSUID))
		return false;
	/* The owner of /proc/PID is the effective user, unless the process is not dumpable: then it is root,
	 * and rights were gained. */
	snprintf(path, sizeof(path), "/proc/%d", pid);
	if (stat(path, &own) < 0)
		return false;
	if ((st.st_mode & S_ISUID) && own.st_uid != st.st_uid && own.st_uid != 0)
		return true;
	if ((st.st_mode & S_ISGID) && (st.st_mode & S_IXGRP) && own.st_gid != st.st_gid &&
	    own.st_gid != 0)
		return true;
	return file_capabilities && proc_status(pid, 16, &key, &capabilities, 1) == 0 &&
	       capabilities == 0;
}

static void exec_stop(struct observer *observer, struct tracer *tracer, struct task *task)
{
	char exe[64];
	char name[256] = "";

	(void)observer;
	snprintf(exe, sizeof(exe), "/proc/%d/exe", task->tid);
	if (!has_lost_rights(task->tid, exe))
		return;
	task->process->lost[LOST_SETUID]++;
	if (tracer->setuid_warned)
		return;
	tracer->setuid_warned = true;
	if (task->process->argc)
		snprintf(name, sizeof(name), "%s", task->process->argv[0]);
	tracer_warn(tracer,
		    "%s is setuid or has file capabilities: under a tracer the kernel gives it no "
		    "rights; run it outside, or as a user who has them",
		    name[0] ? name : "a program");
}

void privileges_init(struct observer *observer)
{
	*observer = (struct observer){.exec_stop = exec_stop};
}
