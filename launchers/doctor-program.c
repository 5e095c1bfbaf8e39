/* The rows on the program: what kind of file it is, and what of it can be recorded. */
#include "launchers/doctor.h"
#include "launchers/program.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>

/* As deep as the kernel goes from script to interpreter. */
#define MAX_SCRIPTS 4

struct format {
	int machine; /* 0: no ELF file */
	bool is_64;
	bool has_loader;
	char loader[256];
	int type;
	bool marked_pie;
	bool has_symbols;
	bool has_mpi;
	bool has_hdf5;
};

/* @return the flags of DT_FLAGS_1. */
static uint64_t dynamic_flags(Elf_Scn *section, const GElf_Shdr *header)
{
	Elf_Data *data = elf_getdata(section, NULL);
	GElf_Dyn entry;

	if (!data || header->sh_entsize == 0)
		return 0;
	for (size_t i = 0; i < header->sh_size / header->sh_entsize; i++) {
		if (gelf_getdyn(data, (int)i, &entry) && entry.d_tag == DT_FLAGS_1)
			return entry.d_un.d_val;
	}
	return 0;
}

static bool starts(const char *name, const char *with)
{
	return strncmp(name, with, strlen(with)) == 0;
}

/* Libraries that a program has or asks for, by the names in one of its tables. */
static void read_names(Elf *elf, Elf_Scn *section, const GElf_Shdr *header, struct format *format)
{
	Elf_Data *data = elf_getdata(section, NULL);
	GElf_Sym symbol;

	if (!data || header->sh_entsize == 0)
		return;
	for (size_t i = 0; i < header->sh_size / header->sh_entsize; i++) {
		const char *name = gelf_getsym(data, (int)i, &symbol)
					   ? elf_strptr(elf, header->sh_link, symbol.st_name)
					   : NULL;
		if (!name)
			continue;
		format->has_mpi |= starts(name, "MPI_") || starts(name, "mpi_");
		format->has_hdf5 |=
			starts(name, "H5F") || starts(name, "H5D") || starts(name, "__h5");
	}
}

static void read_sections(Elf *elf, struct format *format)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	while ((section = elf_nextscn(elf, section))) {
		if (!gelf_getshdr(section, &header))
			continue;
		if (header.sh_type == SHT_SYMTAB)
			format->has_symbols = true;
		if (header.sh_type == SHT_SYMTAB || header.sh_type == SHT_DYNSYM)
			read_names(elf, section, &header, format);
		if (header.sh_type == SHT_DYNAMIC)
			format->marked_pie = dynamic_flags(section, &header) & DF_1_PIE;
	}
}

static void read_loader(Elf *elf, int fd, struct format *format)
{
	size_t count;
	GElf_Phdr header;

	if (elf_getphdrnum(elf, &count) < 0)
		return;
	for (size_t i = 0; i < count; i++) {
		if (!gelf_getphdr(elf, (int)i, &header) || header.p_type != PT_INTERP)
			continue;
		size_t len = header.p_filesz < sizeof(format->loader) - 1
				     ? header.p_filesz
				     : sizeof(format->loader) - 1;
		format->has_loader = true;
		ssize_t n = pread(fd, format->loader, len, (off_t)header.p_offset);
		format->loader[n > 0 ? n : 0] = '\0';
	}
}

/* @return whether the file is an ELF file. */
static bool read_elf(int fd, struct format *format)
{
	GElf_Ehdr header;

	*format = (struct format){0};
	if (elf_version(EV_CURRENT) == EV_NONE)
		return false;
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	if (!elf)
		return false;
	bool is_elf = elf_kind(elf) == ELF_K_ELF && gelf_getehdr(elf, &header);
	if (is_elf) {
		format->machine = header.e_machine;
		format->type = header.e_type;
		format->is_64 = gelf_getclass(elf) == ELFCLASS64;
		read_loader(elf, fd, format);
		read_sections(elf, format);
	}
	elf_end(elf);
	return is_elf;
}

static const char *machine_name(const struct format *format, char *text, size_t size)
{
	switch (format->machine) {
	case EM_X86_64:
		return format->is_64 ? "x86-64" : "x32";
	case EM_386:
		return "i386";
	case EM_AARCH64:
		return "AArch64";
	case EM_PPC64:
		return "POWER";
	case EM_RISCV:
		return "RISC-V";
	default:
		snprintf(text, size, "ELF machine %d", format->machine);
		return text;
	}
}

static const char *kind_name(const struct format *format)
{
	if (format->type == ET_EXEC)
		return format->has_loader ? "dynamic, not PIE" : "static";
	if (format->type != ET_DYN)
		return "no program (object file)";
	if (format->has_loader)
		return "dynamic, PIE";
	return format->marked_pie ? "static-PIE" : "static-PIE or a shared library";
}

static void add_layers(struct doctor *doctor, const struct format *format)
{
	struct doctor_row *row;

	if (format->machine == EM_X86_64 && format->is_64) {
		if (format->has_loader || format->has_symbols) {
			doctor_add(doctor, "layers", DOCTOR_OK,
				   "POSIX (system calls), STDIO (streams)%s%s",
				   format->has_mpi ? ", MPI" : "",
				   format->has_hdf5 ? ", HDF5" : "");
			return;
		}
		row = doctor_add(doctor, "layers", DOCTOR_DEGRADED, "POSIX (system calls)");
		snprintf(row->why.cause, sizeof(row->why.cause),
			 "the program is static and has no symbols: its streams, and calls of "
			 "libraries, "
			 "cannot be found");
		snprintf(row->why.remedy, sizeof(row->why.remedy),
			 "do not strip it, or name a directory with its debug file by --symbols");
		return;
	}
	row = doctor_add(doctor, "layers", DOCTOR_DEGRADED, "none");
	if (format->machine == EM_386 || format->machine == EM_X86_64)
		snprintf(row->why.cause, sizeof(row->why.cause),
			 "calls of i386 and x32 programs are only counted (lost:compat)");
	else
		snprintf(row->why.cause, sizeof(row->why.cause),
			 "the program is built for another kind of machine");
	snprintf(row->why.remedy, sizeof(row->why.remedy), "build the program for x86-64");
}

static void add_elf(struct doctor *doctor, const struct format *format)
{
	char text[64];
	struct doctor_row *row = doctor_add(
		doctor, "format", DOCTOR_OK, "%s, %s%s%s%s", kind_name(format),
		machine_name(format, text, sizeof(text)), format->has_loader ? ", loader " : "",
		format->loader, format->has_symbols ? "" : ", stripped");

	if (format->has_loader && access(format->loader, X_OK) < 0) {
		row->state = DOCTOR_DEGRADED;
		snprintf(row->why.cause, sizeof(row->why.cause), "there is no %.150s here",
			 format->loader);
		snprintf(row->why.remedy, sizeof(row->why.remedy),
			 "the program cannot be executed, traced or not (126): install what it was "
			 "built for, or link it statically");
	}
	add_layers(doctor, format);
}

/* What the kernel gives to who executes the file, and not under a tracer. */
static void add_privileges(struct doctor *doctor, const char *path, const struct stat *st)
{
	bool set_ids = st->st_mode & (S_ISUID | S_ISGID);
	bool capabilities = getxattr(path, "security.capability", NULL, 0) > 0;
	struct doctor_row *row;
	struct statvfs fs;

	if (!set_ids && !capabilities)
		return;
	if (statvfs(path, &fs) == 0 && (fs.f_flag & ST_NOSUID)) {
		doctor_add(doctor, "privileges", DOCTOR_OK,
			   "none: its file system is mounted nosuid");
		return;
	}
	const char *what = capabilities            ? "has file capabilities"
			   : st->st_mode & S_ISUID ? "is setuid"
						   : "is setgid";
	if (geteuid() == 0) {
		doctor_add(doctor, "privileges", DOCTOR_OK, "%s; you are root anyway", what);
		return;
	}
	row = doctor_add(doctor, "privileges", DOCTOR_DEGRADED, "%s", what);
	snprintf(row->why.cause, sizeof(row->why.cause),
		 "under a tracer the kernel gives it no privileges (lost:setuid)");
	snprintf(row->why.remedy, sizeof(row->why.remedy),
		 "run it outside, or as a user who has them");
}

/* Reads the first line of a script. @return whether it is one; its interpreter in `path`. */
static bool read_script(int fd, char *path, size_t size)
{
	char line[256];
	ssize_t n = pread(fd, line, sizeof(line) - 1, 0);

	if (n < 2 || line[0] != '#' || line[1] != '!')
		return false;
	line[n] = '\0';
	line[strcspn(line, "\n")] = '\0';
	const char *start = line + 2 + strspn(line + 2, " \t");
	snprintf(path, size, "%.*s", (int)strcspn(start, " \t"), start);
	return true;
}

static struct doctor_row *add_unreadable(struct doctor *doctor, const char *path, int reason)
{
	struct doctor_row *row =
		doctor_add(doctor, "format", DOCTOR_DEGRADED, "%.200s: %s", path, strerror(reason));

	if (reason == EACCES) {
		snprintf(row->why.cause, sizeof(row->why.cause),
			 "the kernel hides the memory of a program whose file you may not read, so "
			 "paths in it are lost (lost:unreadable)");
		snprintf(row->why.remedy, sizeof(row->why.remedy),
			 "ask its owner for read permission");
	}
	return row;
}

void doctor_program(struct doctor *doctor)
{
	struct buf found = {0};
	struct buf error = {0};
	char path[4096];
	char next[4096];
	struct stat st;

	int status = program_find(doctor->options->argv[0], &found, &error);
	if (status) {
		struct doctor_row *row = doctor_add(doctor, "program", DOCTOR_DEGRADED,
						    "a run ends with %d", status);
		snprintf(row->why.cause, sizeof(row->why.cause), "%s", buf_str(&error));
		snprintf(row->why.remedy, sizeof(row->why.remedy),
			 "it would without dftrace-run, too");
		goto out;
	}
	snprintf(path, sizeof(path), "%s", buf_str(&found));
	doctor_add(doctor, "program", DOCTOR_OK, "%.400s", path);
	for (int depth = 0; depth <= MAX_SCRIPTS; depth++) {
		struct format format;
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		int reason = errno;
		if (stat(path, &st) == 0)
			add_privileges(doctor, path, &st);
		if (fd < 0) {
			add_unreadable(doctor, path, reason);
			break;
		}
		bool is_elf = read_elf(fd, &format);
		bool is_script = !is_elf && read_script(fd, next, sizeof(next));
		close(fd);
		if (is_elf) {
			add_elf(doctor, &format);
			break;
		}
		doctor_add(doctor, "format", DOCTOR_OK,
			   is_script ? "script for %.300s"
				     : "no known format: run by %.300s, as shells do",
			   is_script ? next : "/bin/sh");
		snprintf(path, sizeof(path), "%s", is_script ? next : "/bin/sh");
	}
out:
	buf_free(&found);
	buf_free(&error);
}
