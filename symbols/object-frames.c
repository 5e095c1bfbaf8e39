/* .eh_frame, as far as it says where code begins and ends. */
#include "symbols/object-parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Pointer encodings: the lower half is a form, the upper half what it counts from. */
enum {
	ENC_ABSPTR = 0x00,
	ENC_ULEB128 = 0x01,
	ENC_UDATA2 = 0x02,
	ENC_UDATA4 = 0x03,
	ENC_UDATA8 = 0x04,
	ENC_SLEB128 = 0x09,
	ENC_SDATA2 = 0x0a,
	ENC_SDATA4 = 0x0b,
	ENC_SDATA8 = 0x0c,
	ENC_FORM = 0x0f,
	ENC_PCREL = 0x10,
	ENC_ALIGNED = 0x50,
	ENC_BASE = 0x70,
	ENC_OMIT = 0xff,
};

/* Bytes being read, and where they are loaded. Reading past the end sets `failed`. */
struct cursor {
	const unsigned char *start;
	const unsigned char *at;
	const unsigned char *end;
	uint64_t address; /* of start */
	bool zero_ends;   /* a length of 0 is the end, not a gap */
	bool failed;
};

static uint64_t take(struct cursor *c, size_t len)
{
	uint64_t value = 0;

	if ((size_t)(c->end - c->at) < len) {
		c->failed = true;
		c->at = c->end;
		return 0;
	}
	memcpy(&value, c->at, len);
	c->at += len;
	return value;
}

static uint64_t take_leb128(struct cursor *c, bool is_signed)
{
	uint64_t value = 0;
	unsigned shift = 0;
	uint64_t byte;

	do {
		byte = take(c, 1);
		if (shift < 64)
			value |= (byte & 0x7f) << shift;
		shift += 7;
	} while ((byte & 0x80) && !c->failed);
	if (is_signed && shift < 64 && (byte & 0x40))
		value |= ~(uint64_t)0 << shift;
	return value;
}

static uint64_t take_form(struct cursor *c, unsigned encoding)
{
	switch (encoding & ENC_FORM) {
	case ENC_ABSPTR:
	case ENC_UDATA8:
	case ENC_SDATA8:
		return take(c, 8);
	case ENC_UDATA4:
		return take(c, 4);
	case ENC_SDATA4:
		return (uint64_t)(int64_t)(int32_t)take(c, 4);
	case ENC_UDATA2:
		return take(c, 2);
	case ENC_SDATA2:
		return (uint64_t)(int64_t)(int16_t)take(c, 2);
	case ENC_ULEB128:
		return take_leb128(c, false);
	case ENC_SLEB128:
		return take_leb128(c, true);
	default:
		c->failed = true;
		return 0;
	}
}

static uint64_t take_pointer(struct cursor *c, unsigned encoding)
{
	uint64_t here = c->address + (uint64_t)(c->at - c->start);
	unsigned base = encoding & ENC_BASE;

	if (base && base != ENC_PCREL) {
		/* From text, data or function: no compiler for this machine writes these. */
		c->failed = true;
		return 0;
	}
	return take_form(c, encoding) + (base ? here : 0);
}

/* The rest of a record behind its length: @return false at the section's end. */
static bool take_record(struct cursor *c, struct cursor *record)
{
	uint64_t len;

	/* With the section's length known, more may follow a length of 0, as where files were
	 * linked into one. */
	do {
		len = take(c, 4);
	} while (!len && !c->failed && !c->zero_ends);
	if (!len)
		return false;
	if (len == 0xffffffff)
		len = take(c, 8);
	if (c->failed || len > (uint64_t)(c->end - c->at))
		return false;
	*record = *c;
	record->end = c->at + len;
	c->at += len;
	return true;
}

/* How the FDEs of a CIE write addresses. */
struct cie {
	unsigned code; /* ENC_OMIT: not understood */
	unsigned lsda; /* ENC_OMIT: they have none */
};

/* The CIE whose length field is at `at`. */
static struct cie read_cie(const struct cursor *section, const unsigned char *at)
{
	const struct cie unknown = {ENC_OMIT, ENC_OMIT};
	struct cie cie = {ENC_ABSPTR, ENC_OMIT};
	struct cursor all = *section;
	struct cursor c;

	all.at = at;
	if (!take_record(&all, &c) || take(&c, 4) != 0)
		return unknown;
	uint64_t version = take(&c, 1);
	if (version != 1 && version != 3 && version != 4)
		return unknown;
	const char *augmentation = (const char *)c.at;
	while (take(&c, 1) && !c.failed)
		;
	if (c.failed)
		return unknown;
	if (version == 4)
		take(&c, 2);
	if (augmentation[0] != 'z')
		return augmentation[0] ? unknown : cie;
	take_leb128(&c, false);
	take_leb128(&c, true);
	if (version == 1)
		take(&c, 1);
	else
		take_leb128(&c, false);
	take_leb128(&c, false);
	for (const char *p = augmentation + 1; *p && !c.failed; p++) {
		unsigned encoding;
		switch (*p) {
		case 'R':
			cie.code = (unsigned)take(&c, 1);
			break;
		case 'L':
			cie.lsda = (unsigned)take(&c, 1);
			break;
		case 'P':
			encoding = (unsigned)take(&c, 1);
			if ((encoding & ENC_BASE) == ENC_ALIGNED)
				return unknown;
			take_form(&c, encoding);
			break;
		case 'S':
		case 'B':
			break;
		default:
			return unknown;
		}
	}
	return c.failed ? unknown : cie;
}

/* @return the address of the FDE's table of landing pads, behind its bounds; 0: none, FRAME_LSDA_UNKNOWN: not
 * understood. */
static uint64_t take_lsda(struct cursor *record, unsigned encoding)
{
	if (encoding == ENC_OMIT)
		return 0;
	take_leb128(record, false);
	const unsigned char *at = record->at;
	/* A null pointer counts from nowhere. */
	uint64_t plain = take_form(record, encoding & ENC_FORM);
	if (record->failed || (encoding & 0x80))
		return FRAME_LSDA_UNKNOWN;
	if (!plain)
		return 0;
	record->at = at;
	uint64_t address = take_pointer(record, encoding);
	return record->failed ? FRAME_LSDA_UNKNOWN : address;
}

static int add(struct frames *frames, size_t *room, const struct frame *frame)
{
	if (frames->count == *room) {
		size_t more = *room ? *room * 2 : 256;
		struct frame *items = reallocarray(frames->items, more, sizeof(*items));
		if (!items)
			return -1;
		frames->items = items;
		*room = more;
	}
	frames->items[frames->count++] = *frame;
	return 0;
}

static int read_section(struct frames *frames, size_t *room, const struct elf_file *file,
			struct cursor c)
{
	struct cursor record;
	const unsigned char *known = NULL; /* most FDEs have the CIE of the one before */
	struct cie cie = {ENC_OMIT, ENC_OMIT};

	while (take_record(&c, &record)) {
		const unsigned char *field = record.at;
		uint64_t back = take(&record, 4);
		if (record.failed || !back || back > (uint64_t)(field - c.start))
			continue;
		if (field - back != known) {
			known = field - back;
			cie = read_cie(&c, known);
		}
		/* Bit 7: the address of the address. Never used for code. */
		if (cie.code == ENC_OMIT || (cie.code & 0x80))
			continue;
		uint64_t begin = take_pointer(&record, cie.code);
		uint64_t size = take_form(&record, cie.code);
		if (record.failed || !size)
			continue;
		/* What the linker dropped has its FDE at address 0. */
		const Elf64_Phdr *segment = elf_file_segment(file, begin, PF_X);
		if (!segment)
			continue;
		uint64_t room_left = segment->p_filesz - (begin - segment->p_vaddr);
		if (size > room_left)
			continue;
		const struct frame frame = {begin, begin + size, take_lsda(&record, cie.lsda)};
		if (add(frames, room, &frame) < 0)
			return -1;
	}
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct frame *x = a;
	const struct frame *y = b;

	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	return (x->end > y->end) - (x->end < y->end);
}

/* Without section headers, .eh_frame_hdr leads to .eh_frame; it ends where the segment ends. */
static bool find_by_header(const struct elf_file *file, struct cursor *c)
{
	for (size_t i = 0; i < file->nsegments; i++) {
		const Elf64_Phdr *header = &file->segments[i];
		size_t len = header->p_filesz;
		const unsigned char *bytes = elf_file_bytes(file, header->p_offset, &len);
		if (header->p_type != PT_GNU_EH_FRAME || !bytes || len < 4 || bytes[0] != 1)
			continue;
		struct cursor h = {bytes, bytes + 4, bytes + len, header->p_vaddr, true, false};
		uint64_t address = take_pointer(&h, bytes[1]);
		const Elf64_Phdr *segment = elf_file_segment(file, address, PF_R);
		if (h.failed || !segment)
			continue;
		len = segment->p_filesz - (address - segment->p_vaddr);
		bytes = elf_file_bytes(file, segment->p_offset + (address - segment->p_vaddr),
				       &len);
		if (!bytes)
			continue;
		*c = (struct cursor){bytes, bytes, bytes + len, address, true, false};
		return true;
	}
	return false;
}

int frames_read(struct frames *frames, const struct elf_file *file)
{
	size_t room = 0;
	size_t len;
	bool found = false;
	struct cursor c;

	for (size_t i = 0; i < 2; i++) {
		/* Some linkers give it a type of its own. */
		uint32_t type = i ? SHT_X86_64_UNWIND : SHT_PROGBITS;
		const Elf64_Shdr *section = NULL;
		while ((section = elf_file_section(file, type, ".eh_frame", section))) {
			const unsigned char *bytes = elf_file_contents(file, section, &len);
			if (!bytes)
				continue;
			found = true;
			c = (struct cursor){bytes, bytes, bytes + len, section->sh_addr,
					    false, false};
			if (read_section(frames, &room, file, c) < 0)
				goto fail;
		}
	}
	if (!found && find_by_header(file, &c) && read_section(frames, &room, file, c) < 0)
		goto fail;
	for (size_t i = 1; i < frames->count; i++) {
		if (compare(&frames->items[i - 1], &frames->items[i]) > 0) {
			qsort(frames->items, frames->count, sizeof(*frames->items), compare);
			break;
		}
	}
	frames->read = true;
	return 0;
fail:
	free(frames->items);
	*frames = (struct frames){0};
	errno = ENOMEM;
	return -1;
}

bool frame_landing_pads(const struct frame *frame, const unsigned char *table, size_t len,
			object_address_fn *each, void *data)
{
	struct cursor c = {table, table, table + len, frame->lsda, true, false};
	uint64_t base = frame->begin;

	/* The language-specific data area, as compilers for C and C++ write it: a header, then a row for each stretch
	 * of calls. */
	unsigned encoding = (unsigned)take(&c, 1);
	if (encoding & 0x80 && encoding != ENC_OMIT)
		return false;
	if (encoding != ENC_OMIT)
		base = take_pointer(&c, encoding);
	if (take(&c, 1) != ENC_OMIT)
		take_leb128(&c, false);
	encoding = (unsigned)take(&c, 1);
	uint64_t size = take_leb128(&c, false);
	if (c.failed || (encoding & ~(unsigned)ENC_FORM) || size > (uint64_t)(c.end - c.at))
		return false;
	c.end = c.at + size;
	while (c.at < c.end && !c.failed) {
		take_form(&c, encoding);
		take_form(&c, encoding);
		uint64_t pad = take_form(&c, encoding);
		take_leb128(&c, false);
		if (pad && !c.failed)
			each(data, base + pad);
	}
	return !c.failed;
}
