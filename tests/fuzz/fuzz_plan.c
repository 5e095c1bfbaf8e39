/* Instructions and the planner of breakpoints, with any bytes as the code of two functions of a well-formed file. */
#include "symbols/plan.h"
#include "tests/fuzz/fuzz.h"

#include <elf.h>
#include <string.h>

#define BASE 0x400000UL

enum { TEXT, SYMBOLS, STRINGS, SECTIONS, CODE = 8192 };

/* The whole file: what stands in front of the code is of a known size. */
struct file {
	Elf64_Ehdr header;
	Elf64_Phdr segment;
	Elf64_Shdr sections[SECTIONS + 1];
	Elf64_Sym symbols[3];
	char strings[16];
	unsigned char code[CODE];
};

static void section(struct file *file, int which, uint32_t type, size_t offset, size_t size)
{
	file->sections[which + 1] = (Elf64_Shdr){
		.sh_type = type,
		.sh_offset = offset,
		.sh_addr = which == TEXT ? BASE + offset : 0,
		.sh_size = size,
		.sh_flags = which == TEXT ? SHF_ALLOC | SHF_EXECINSTR : 0,
		.sh_addralign = 1,
		.sh_link = which == SYMBOLS ? STRINGS + 1 : 0,
		.sh_info = which == SYMBOLS ? 1 : 0,
		.sh_entsize = which == SYMBOLS ? sizeof(Elf64_Sym) : 0,
	};
}

static void function(struct file *file, int which, uint32_t name, size_t at, size_t size)
{
	file->symbols[which] = (Elf64_Sym){
		.st_name = name,
		.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
		.st_shndx = TEXT + 1,
		.st_value = BASE + offsetof(struct file, code) + at,
		.st_size = size,
	};
}

static void wrap(struct file *file, const uint8_t *data, size_t size, size_t first)
{
	memset(file, 0, sizeof(*file));
	file->header = (Elf64_Ehdr){
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			    EV_CURRENT},
		.e_type = ET_EXEC,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = offsetof(struct file, segment),
		.e_shoff = offsetof(struct file, sections),
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 1,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = SECTIONS + 1,
		.e_shstrndx = STRINGS + 1,
	};
	size_t whole = offsetof(struct file, code) + size;
	file->segment = (Elf64_Phdr){.p_type = PT_LOAD,
				     .p_flags = PF_R | PF_X,
				     .p_vaddr = BASE,
				     .p_paddr = BASE,
				     .p_filesz = whole,
				     .p_memsz = whole,
				     .p_align = 4096};
	section(file, TEXT, SHT_PROGBITS, offsetof(struct file, code), size);
	section(file, SYMBOLS, SHT_SYMTAB, offsetof(struct file, symbols), sizeof(file->symbols));
	section(file, STRINGS, SHT_STRTAB, offsetof(struct file, strings), sizeof(file->strings));
	memcpy(file->strings, "\0one\0two", 9);
	function(file, 1, 1, 0, first);
	function(file, 2, 5, first, size - first);
	memcpy(file->code, data, size);
}

/* What is true of a plan whatever the code is. */
static void judge(const struct object *object, const struct plan *plan)
{
	const struct plan_place *before = NULL;

	for (size_t i = 0; !plan->refused && i < plan->nplaces; before = &plan->places[i++]) {
		const struct plan_place *place = &plan->places[i];
		unsigned char out[INSN_RELOCATED_MAX];
		size_t len;

		FUZZ_HOLDS(!before || before->address < place->address);
		FUZZ_HOLDS(place->insn.kind != INSN_REFUSED && place->insn.len > 0);
		const unsigned char *code = object_code(object, place->address, &len);
		FUZZ_HOLDS(code && len >= place->insn.len &&
			   memcmp(code, place->insn.bytes, place->insn.len) == 0);
		FUZZ_HOLDS(insn_relocate(&place->insn, place->address, BASE + 0x100000, out,
					 sizeof(out)) <= sizeof(out));
	}
}

static void instructions(struct insn_decoder *decoder, const uint8_t *data, size_t size)
{
	for (size_t at = 0; at < size && at < 64; at++) {
		struct insn insn;

		if (insn_decode(decoder, data + at, size - at, BASE + at, &insn) < 0)
			continue;
		FUZZ_HOLDS(insn.len > 0 && insn.len <= INSN_MAX && insn.len <= size - at);
		FUZZ_HOLDS(insn.kind != INSN_REFUSED || insn.reason);
		/* Capstone does not know all instructions, and is wrong about odd prefixes of jumps and returns, which
		 * are parsed here. Its word does not count for refused ones. */
		size_t other = insn_length(decoder, data + at, size - at);
		FUZZ_HOLDS(other == 0 || other == insn.len || insn.kind == INSN_REFUSED ||
			   (insn.kind >= INSN_JMP && insn.kind <= INSN_JMP_INDIRECT));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct insn_decoder *decoder;
	static struct file file;

	if (size < 3 || size > CODE)
		return 0;
	if (!decoder)
		decoder = insn_decoder_new();
	FUZZ_HOLDS(decoder);
	/* The first byte says where the second function begins. */
	size_t first = 1 + data[0] * (size - 3) / 256;
	wrap(&file, data + 1, size - 1, first);
	instructions(decoder, data + 1, size - 1);
	struct objects *objects = objects_new(NULL, 0);
	FUZZ_HOLDS(objects);
	struct object *object =
		objects_get(objects, fuzz_file("object", (uint8_t *)&file,
					       offsetof(struct file, code) + size - 1));
	FUZZ_HOLDS(object);
	size_t count;
	const struct object_symbol *symbols = object_symbols(object, &count);
	FUZZ_HOLDS(count == 2);
	for (size_t i = 0; i < count; i++) {
		const struct plan *plan = plan_function(object, decoder, symbols[i].address);
		FUZZ_HOLDS(plan);
		judge(object, plan);
	}
	objects_free(objects);
	fuzz_clean();
	return 0;
}
