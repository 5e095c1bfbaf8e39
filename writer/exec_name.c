/* The word that stands for a program in file names and metadata. */
#include "base/path.h"
#include "writer/writer.h"

#include <ctype.h>
#include <string.h>

/* Programs whose own name says nothing, with their one-letter options: those that make the next
 * argument code, those that have a value (the rest of the word, or else the next one), and those
 * whose value is the rest of the word only. */
static const struct interpreter {
	const char *name;
	const char *code;
	const char *value;
	const char *glued;
} interpreters[] = {
	{"env", "", "uC", ""},
	{"python", "c", "WXQ", "m"}, /* what follows -m is a name */
	{"perl", "eE", "I", "MmiFDxCl0"},
	{"ruby", "e", "IrEC", "KxFiTW0"},
	{"lua", "e", "l", ""},
	{"sh", "c", "oO", ""}, /* -e only makes errors fatal */
	{"bash", "c", "oO", ""},
	{"dash", "c", "oO", ""},
	{"zsh", "c", "oO", ""},
	{"ksh", "c", "oO", ""},
	{"node", "ep", "rC", ""}, /* -c only checks the script */
	{"julia", "eE", "pLJHCt", "gO"},
	{"Rscript", "e", "", ""},
	{"java", "", "", ""},
};

static const struct interpreter *find_interpreter(const char *word)
{
	for (size_t i = 0; i < sizeof(interpreters) / sizeof(interpreters[0]); i++) {
		size_t len = strlen(interpreters[i].name);
		if (strncmp(word, interpreters[i].name, len) == 0 &&
		    word[len + strspn(word + len, "0123456789.")] == '\0')
			return &interpreters[i];
	}
	return NULL;
}

enum follows {
	FOLLOWS_ARGUMENT,
	FOLLOWS_VALUE,
	FOLLOWS_CODE,
};

/* What comes after this option of the interpreter. */
static enum follows after_option(const struct interpreter *interpreter, const char *option)
{
	if (strncmp(option, "--eval", strlen("--eval")) == 0)
		return strchr(interpreter->code, 'e') ? FOLLOWS_CODE : FOLLOWS_ARGUMENT;
	if (option[1] == '-')
		return FOLLOWS_ARGUMENT;
	for (const char *letter = option + 1; *letter; letter++) {
		if (strchr(interpreter->code, *letter))
			return FOLLOWS_CODE;
		if (strchr(interpreter->value, *letter))
			return letter[1] ? FOLLOWS_ARGUMENT : FOLLOWS_VALUE;
		if (strchr(interpreter->glued, *letter))
			return FOLLOWS_ARGUMENT;
	}
	return FOLLOWS_ARGUMENT;
}

static bool is_assignment(const char *arg)
{
	size_t len = 0;
	while (arg[len] == '_' || isalnum((unsigned char)arg[len]))
		len++;
	return len > 0 && !isdigit((unsigned char)arg[0]) && arg[len] == '=';
}

void trace_exec_name(struct buf *out, const char *const *argv, size_t argc)
{
	const struct interpreter *interpreter = NULL;
	bool env = false;

	for (size_t i = 0; i < argc; i++) {
		/* A login shell's own name begins with a dash. */
		const char *arg = argv[i] + (i == 0 && argv[i][0] == '-');
		if (i > 0 && arg[0] == '-') {
			enum follows follows = FOLLOWS_ARGUMENT;
			if (interpreter)
				follows = after_option(interpreter, arg);
			if (follows == FOLLOWS_CODE)
				break;
			i += follows == FOLLOWS_VALUE;
			continue;
		}
		const char *word = path_basename(arg);
		const struct interpreter *found = find_interpreter(word);
		if (found) {
			interpreter = found;
			env |= strcmp(found->name, "env") == 0;
		} else if (word[0] && !(env && is_assignment(arg))) {
			buf_add_str(out, word);
			return;
		}
	}
	const char *first = argc ? path_basename(argv[0] + (argv[0][0] == '-')) : "";
	buf_add_str(out, first[0] ? first : "DEFAULT");
}
