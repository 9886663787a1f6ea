/* Decides whether proofs show that questions have no solution in integers: the arithmetic of the kernel, a second time.
 *
 * Written from the description of refutations in proofs/README.md, in C99 with nothing but its library, and used by
 * tests alone. Each line of the standard input is a JSON list
 *
 *     [facts, zeros, choices, proof]      a choice is the list of its cases, a case is [facts, zeros]
 *
 * and each line of the standard output answers one:
 *
 *     accept              the proof shows that no integers satisfy the question
 *     reject REASON       it does not
 *     limit REASON        it was not decided: it would take too much memory or work
 *
 * Integers are exact and of any size, so nothing overflows. A line that is no JSON ends the program with exit code 1. */

#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_BITS = 4096,    /* of an integer that is given */
    MOST_ITEMS = 10000,  /* of a list of terms that is given */
    MOST_FACTORS = 32,   /* of a monomial, and of a product of facts, that is given */
    MOST_DEPTH = 10000,  /* of lists in lists */
    BUCKETS = 4096
};
static const size_t MOST_MEMORY = (size_t)1 << 30, MOST_WORK = 5000000, CHUNK = (size_t)1 << 20;

/* ---- How one question ends, and memory that lasts until then. */

static jmp_buf answered;
static const char *verdict, *reason;
static size_t work_left;

static void answer(const char *word, const char *why) {
    verdict = word;
    reason = why;
    longjmp(answered, 1);
}

static void require(int condition, const char *why) {
    if (!condition) answer("reject", why);
}

static void work(size_t amount) {
    if (amount > work_left) answer("limit", "too much work");
    work_left -= amount;
}

typedef union Chunk {
    struct {
        union Chunk *next;
        size_t size, used;
    } head;
    long double aligned;
} Chunk;

static Chunk *chunks;
static size_t memory_used;

static void *allocate(size_t count, size_t size) {
    if (count > MOST_MEMORY / size) answer("limit", "too much memory");
    size_t bytes = (count * size + 15) / 16 * 16;
    if (chunks == NULL || chunks->head.size - chunks->head.used < bytes) {
        size_t room = bytes > CHUNK ? bytes : CHUNK;
        memory_used += room;
        if (memory_used > MOST_MEMORY) answer("limit", "too much memory");
        Chunk *chunk = malloc(sizeof(Chunk) + room);
        if (chunk == NULL) answer("limit", "no memory");
        chunk->head.next = chunks;
        chunk->head.size = room;
        chunk->head.used = 0;
        chunks = chunk;
    }
    char *place = (char *)(chunks + 1) + chunks->head.used;
    chunks->head.used += bytes;
    return place;
}

static void release(void) {
    while (chunks != NULL) {
        Chunk *next = chunks->head.next;
        free(chunks);
        chunks = next;
    }
    memory_used = 0;
}

/* An array with room for one more item. */
static void *grown(void *items, size_t count, size_t *room, size_t size) {
    if (count < *room) return items;
    *room = *room == 0 ? 8 : 2 * *room;
    void *larger = allocate(*room, size);
    if (count > 0) memcpy(larger, items, count * size);
    return larger;
}

/* ---- Integers: a sign, -1, 0 or 1, and digits to the base 2^32, the least significant first and the last one not 0. */

typedef struct {
    int sign;
    size_t count;
    const uint32_t *digits;
} Integer;

static Integer integer_of_digits(int sign, uint32_t *digits, size_t count) {
    while (count > 0 && digits[count - 1] == 0) count--;
    Integer found = {count == 0 ? 0 : sign, count, digits};
    return found;
}

static Integer small_integer(int value) {
    uint32_t *digit = allocate(1, sizeof *digit);
    digit[0] = value < 0 ? (uint32_t)-value : (uint32_t)value;
    return integer_of_digits(value < 0 ? -1 : 1, digit, 1);
}

static int compare_sizes(Integer a, Integer b) {
    if (a.count != b.count) return a.count < b.count ? -1 : 1;
    for (size_t k = a.count; k-- > 0;)
        if (a.digits[k] != b.digits[k]) return a.digits[k] < b.digits[k] ? -1 : 1;
    return 0;
}

static Integer negative(Integer a) {
    a.sign = -a.sign;
    return a;
}

/* |a| + |b| with the given sign. */
static Integer sum_of_sizes(int sign, Integer a, Integer b) {
    size_t most = a.count > b.count ? a.count : b.count;
    uint32_t *digits = allocate(most + 1, sizeof *digits);
    uint64_t carry = 0;
    for (size_t k = 0; k < most; k++) {
        carry += (uint64_t)(k < a.count ? a.digits[k] : 0) + (k < b.count ? b.digits[k] : 0);
        digits[k] = (uint32_t)carry;
        carry >>= 32;
    }
    digits[most] = (uint32_t)carry;
    return integer_of_digits(sign, digits, most + 1);
}

/* |a| - |b|, which is not negative, with the given sign. */
static Integer difference_of_sizes(int sign, Integer a, Integer b) {
    uint32_t *digits = allocate(a.count + 1, sizeof *digits);
    uint32_t borrow = 0;
    for (size_t k = 0; k < a.count; k++) {
        uint64_t lower = (uint64_t)(k < b.count ? b.digits[k] : 0) + borrow;
        borrow = a.digits[k] < lower;
        digits[k] = (uint32_t)(a.digits[k] - lower);
    }
    return integer_of_digits(sign, digits, a.count);
}

static Integer sum(Integer a, Integer b) {
    if (a.sign == 0) return b;
    if (b.sign == 0) return a;
    if (a.sign == b.sign) return sum_of_sizes(a.sign, a, b);
    return compare_sizes(a, b) >= 0 ? difference_of_sizes(a.sign, a, b) : difference_of_sizes(b.sign, b, a);
}

static Integer product(Integer a, Integer b) {
    size_t count = a.count + b.count;
    uint32_t *digits = allocate(count + 1, sizeof *digits);
    memset(digits, 0, (count + 1) * sizeof *digits);
    work(a.count * b.count / 16);
    for (size_t i = 0; i < a.count; i++) {
        uint64_t carry = 0;
        for (size_t j = 0; j < b.count; j++) {
            carry += (uint64_t)a.digits[i] * b.digits[j] + digits[i + j];
            digits[i + j] = (uint32_t)carry;
            carry >>= 32;
        }
        digits[i + b.count] = (uint32_t)carry;
    }
    return integer_of_digits(a.sign * b.sign, digits, count);
}

static size_t bits(Integer a) {
    if (a.count == 0) return 0;
    size_t found = 32 * (a.count - 1);
    for (uint32_t top = a.digits[a.count - 1]; top != 0; top >>= 1) found++;
    return found;
}

/* The value of a text of decimal digits. */
static Integer read_decimal(int sign, const char *text, size_t length) {
    size_t count = 0;
    uint32_t *digits = allocate(length / 9 + 2, sizeof *digits);
    for (size_t k = 0; k < length; k++) {
        uint64_t carry = (uint64_t)(text[k] - '0');
        for (size_t j = 0; j < count; j++) {
            carry += (uint64_t)digits[j] * 10;
            digits[j] = (uint32_t)carry;
            carry >>= 32;
        }
        if (carry != 0) digits[count++] = (uint32_t)carry;
    }
    return integer_of_digits(sign, digits, count);
}

/* ---- JSON */

typedef enum { WORD, INTEGER, FRACTION, STRING, LIST, OBJECT } Kind; /* a word is null, true, false, or NaN and the like */

typedef struct Value {
    Kind kind;
    size_t count; /* of characters, or of items */
    const char *text;
    const struct Value *items;
    Integer number;
} Value;

static const char *at, *end; /* the rest of the line */

static void malformed(const char *why) {
    fprintf(stderr, "a line is no JSON: %s, before `%.40s`\n", why, at);
    exit(1);
}

static void skip_blanks(void) {
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\r')) at++;
}

static int takes(char c) {
    skip_blanks();
    if (at == end || *at != c) return 0;
    at++;
    return 1;
}

static unsigned hexadecimal(void) {
    unsigned found = 0;
    for (int k = 0; k < 4; k++, at++) {
        const char *places = "0123456789abcdef0123456789ABCDEF";
        const char *place = at < end && *at != 0 ? strchr(places, *at) : NULL;
        if (place == NULL) malformed("an escape is cut off");
        found = 16 * found + (unsigned)(place - places) % 16;
    }
    return found;
}

/* Halves of a pair are kept apart: that is one spelling of each name, too. */
static char *put_utf8(char *out, unsigned c) {
    if (c < 0x80) {
        *out++ = (char)c;
    } else if (c < 0x800) {
        *out++ = (char)(0xC0 | c >> 6);
        *out++ = (char)(0x80 | (c & 0x3F));
    } else {
        *out++ = (char)(0xE0 | c >> 12);
        *out++ = (char)(0x80 | (c >> 6 & 0x3F));
        *out++ = (char)(0x80 | (c & 0x3F));
    }
    return out;
}

static void read_string(Value *into) {
    const char *close = at;
    while (close < end && *close != '"') close += *close == '\\' ? 2 : 1;
    if (close >= end) malformed("a string has no end");
    char *start = allocate((size_t)(close - at) + 1, 1), *out = start;
    while (*at != '"') {
        const char *escapes = "\"\"\\\\//b\bf\fn\nr\rt\t", *found = escapes;
        if (*at != '\\') {
            *out++ = *at++;
            continue;
        }
        at += 2;
        if (at[-1] == 'u') {
            out = put_utf8(out, hexadecimal());
            continue;
        }
        while (*found != 0 && *found != at[-1]) found += 2;
        if (*found == 0) malformed("an unknown escape");
        *out++ = found[1];
    }
    at++;
    into->kind = STRING;
    into->text = start;
    into->count = (size_t)(out - start);
}

static size_t read_digits(void) {
    const char *start = at;
    while (at < end && *at >= '0' && *at <= '9') at++;
    return (size_t)(at - start);
}

static void read_number(Value *into) {
    int sign = 1;
    if (*at == '-') {
        sign = -1;
        at++;
    }
    const char *start = at;
    size_t length = read_digits();
    if (length == 0 || (length > 1 && *start == '0')) malformed("a number is spelled otherwise");
    into->kind = INTEGER;
    if (at < end && *at == '.') {
        at++;
        into->kind = FRACTION;
        if (read_digits() == 0) malformed("a number is spelled otherwise");
    }
    if (at < end && (*at == 'e' || *at == 'E')) {
        at++;
        into->kind = FRACTION;
        if (at < end && (*at == '+' || *at == '-')) at++;
        if (read_digits() == 0) malformed("a number is spelled otherwise");
    }
    if (into->kind == INTEGER) into->number = read_decimal(sign, start, length);
}

static int read_word(Value *into) {
    static const char *const words[] = {"null", "true", "false", "NaN", "Infinity", "-Infinity"};
    for (size_t k = 0; k < sizeof words / sizeof *words; k++) {
        size_t length = strlen(words[k]);
        if ((size_t)(end - at) >= length && memcmp(at, words[k], length) == 0) {
            at += length;
            into->kind = WORD;
            return 1;
        }
    }
    return 0;
}

static Value read_value(int depth);

static void read_items(Value *into, char close, int depth) {
    Value *items = NULL;
    size_t count = 0, room = 0;
    if (!takes(close)) {
        do {
            if (close == '}') { /* what an object has is read and forgotten: none is understood */
                Value name = read_value(depth);
                if (name.kind != STRING || !takes(':')) malformed("an object has no name there");
            }
            items = grown(items, count, &room, sizeof *items);
            items[count++] = read_value(depth);
        } while (takes(','));
        if (!takes(close)) malformed("a list or an object has no end");
    }
    into->items = items;
    into->count = count;
}

static Value read_value(int depth) {
    Value found;
    memset(&found, 0, sizeof found);
    if (depth > MOST_DEPTH) answer("limit", "too deep");
    skip_blanks();
    if (at == end) malformed("it is cut off");
    if (read_word(&found)) return found;
    if (*at == '[' || *at == '{') {
        found.kind = *at == '[' ? LIST : OBJECT;
        char close = *at++ == '[' ? ']' : '}';
        read_items(&found, close, depth + 1);
    } else if (*at == '"') {
        at++;
        read_string(&found);
    } else {
        read_number(&found);
    }
    return found;
}

static int is_list(const Value *value, size_t count) { return value->kind == LIST && value->count == count; }

static int is_text(const Value *value, const char *text) {
    return value->kind == STRING && value->count == strlen(text) && memcmp(value->text, text, value->count) == 0;
}

/* An integer as evidence may have it. */
static Integer integer(const Value *value) {
    require(value->kind == INTEGER, "an integer is expected");
    require(bits(value->number) <= MOST_BITS, "an integer is too large");
    return value->number;
}

/* A number from 0 to below `count`. */
static size_t position(const Value *value, size_t count) {
    Integer number = integer(value);
    require(number.sign >= 0 && number.count <= 1, "there is nothing of that number");
    size_t found = number.sign == 0 ? 0 : number.digits[0];
    require(found < count, "there is nothing of that number");
    return found;
}

/* ---- Names: two of equal text have one number. */

typedef struct Name {
    struct Name *next;
    uint32_t number;
    size_t length;
    const char *text;
} Name;

static Name *names[BUCKETS];
static uint32_t names_known;

static uint32_t number_of_name(const Value *text) {
    require(text->kind == STRING, "a name is expected");
    size_t hash = 5381;
    for (size_t k = 0; k < text->count; k++) hash = hash * 33 + (unsigned char)text->text[k];
    Name **bucket = &names[hash % BUCKETS];
    for (Name *known = *bucket; known != NULL; known = known->next)
        if (known->length == text->count && memcmp(known->text, text->text, text->count) == 0) return known->number;
    Name *fresh = allocate(1, sizeof *fresh);
    Name filled = {*bucket, names_known++, text->count, text->text};
    *fresh = filled;
    *bucket = fresh;
    return fresh->number;
}

/* ---- Polynomials: sums of terms, in any order and several of one monomial until they are collected. */

typedef struct {
    Integer factor;
    size_t degree;
    const uint32_t *variables; /* sorted */
} Term;

typedef struct {
    Term *terms;
    size_t count, room;
} Polynomial;

static int compare_numbers(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static int compare_monomials(const void *a, const void *b) {
    const Term *x = a, *y = b;
    if (x->degree != y->degree) return x->degree < y->degree ? -1 : 1;
    for (size_t k = 0; k < x->degree; k++)
        if (x->variables[k] != y->variables[k]) return x->variables[k] < y->variables[k] ? -1 : 1;
    return 0;
}

static void add_term(Polynomial *to, Term term) {
    work(1);
    to->terms = grown(to->terms, to->count, &to->room, sizeof *to->terms);
    to->terms[to->count++] = term;
}

/* Each monomial once, and none with the factor 0; the constant, if there is one, comes first. */
static void collect(Polynomial *p) {
    size_t kept = 0;
    if (p->count > 1) qsort(p->terms, p->count, sizeof *p->terms, compare_monomials);
    for (size_t k = 0; k < p->count;) {
        Term term = p->terms[k++];
        while (k < p->count && compare_monomials(&term, &p->terms[k]) == 0)
            term.factor = sum(term.factor, p->terms[k++].factor);
        if (term.factor.sign != 0) p->terms[kept++] = term;
    }
    p->count = kept;
}

static Term constant_term(int value) {
    Term found = {small_integer(value), 0, NULL};
    return found;
}

static Term product_of_terms(Term a, Term b) {
    Term found = {product(a.factor, b.factor), a.degree + b.degree, NULL};
    uint32_t *variables = allocate(found.degree + 1, sizeof *variables);
    size_t i = 0, j = 0;
    for (size_t k = 0; k < found.degree; k++) {
        int takes_a = j == b.degree || (i < a.degree && a.variables[i] <= b.variables[j]);
        variables[k] = takes_a ? a.variables[i++] : b.variables[j++];
    }
    found.variables = variables;
    return found;
}

static Polynomial product_of_polynomials(const Polynomial *a, const Polynomial *b) {
    Polynomial found = {NULL, 0, 0};
    if (a->count > 0 && b->count > work_left / a->count) answer("limit", "too much work");
    for (size_t i = 0; i < a->count; i++)
        for (size_t j = 0; j < b->count; j++) add_term(&found, product_of_terms(a->terms[i], b->terms[j]));
    collect(&found);
    return found;
}

static void add_polynomial(Polynomial *to, const Polynomial *p) {
    for (size_t k = 0; k < p->count; k++) add_term(to, p->terms[k]);
}

/* -p - 1, which is not negative where p is. */
static Polynomial negated(const Polynomial *p) {
    Polynomial found = {NULL, 0, 0};
    for (size_t k = 0; k < p->count; k++) {
        Term term = p->terms[k];
        term.factor = negative(term.factor);
        add_term(&found, term);
    }
    add_term(&found, constant_term(-1));
    collect(&found);
    return found;
}

static Polynomial polynomial(const Value *value) {
    require(value->kind == LIST && value->count <= MOST_ITEMS, "a polynomial is expected");
    Polynomial found = {NULL, 0, 0};
    for (size_t k = 0; k < value->count; k++) {
        const Value *pair = &value->items[k];
        require(is_list(pair, 2), "a factor and a monomial are expected");
        const Value *monomial = &pair->items[1];
        require(monomial->kind == LIST && monomial->count <= MOST_FACTORS, "a monomial is expected");
        uint32_t *variables = allocate(monomial->count + 1, sizeof *variables);
        for (size_t n = 0; n < monomial->count; n++) variables[n] = number_of_name(&monomial->items[n]);
        if (monomial->count > 1) qsort(variables, monomial->count, sizeof *variables, compare_numbers);
        Term term = {integer(&pair->items[0]), monomial->count, variables};
        add_term(&found, term);
    }
    collect(&found);
    return found;
}

/* ---- The question, and what is known on a path through its proof. */

typedef struct {
    Polynomial *all;
    size_t count, room;
} Known;

typedef struct {
    Known facts, zeros;
} Case;

typedef struct {
    Case *cases;
    size_t count;
} Choice;

static Known facts, zeros;
static Choice *choices;
static size_t choice_count;

static void learn(Known *known, Polynomial p) {
    known->all = grown(known->all, known->count, &known->room, sizeof *known->all);
    known->all[known->count++] = p;
}

static void learn_all(Known *known, const Known *more) {
    for (size_t k = 0; k < more->count; k++) learn(known, more->all[k]);
}

static Known polynomials(const Value *list) {
    Known found = {NULL, 0, 0};
    require(list->kind == LIST, "a list of polynomials is expected");
    for (size_t k = 0; k < list->count; k++) learn(&found, polynomial(&list->items[k]));
    return found;
}

static Choice choice(const Value *list) {
    require(list->kind == LIST, "a list of cases is expected");
    Choice found = {allocate(list->count + 1, sizeof(Case)), list->count};
    for (size_t k = 0; k < list->count; k++) {
        require(is_list(&list->items[k], 2), "a case has facts and zeros");
        found.cases[k].facts = polynomials(&list->items[k].items[0]);
        found.cases[k].zeros = polynomials(&list->items[k].items[1]);
    }
    return found;
}

static void read_question(const Value *line) {
    require(is_list(line, 4), "a question and a proof are expected");
    facts = polynomials(&line->items[0]);
    zeros = polynomials(&line->items[1]);
    const Value *list = &line->items[2];
    require(list->kind == LIST, "a list of choices is expected");
    choice_count = list->count;
    choices = allocate(choice_count + 1, sizeof *choices);
    for (size_t k = 0; k < choice_count; k++) choices[k] = choice(&list->items[k]);
}

/* ---- Proofs. Each function returns if what is known on the path is contradictory, and else answers. */

static void check(const Value *proof);

/* A factor times a product of facts. */
static Polynomial term_of_facts(const Value *pair) {
    require(is_list(pair, 2), "a factor and numbers of facts are expected");
    Integer factor = integer(&pair->items[0]);
    require(factor.sign > 0, "a factor is not positive");
    const Value *numbers = &pair->items[1];
    require(numbers->kind == LIST && numbers->count <= MOST_FACTORS, "numbers of facts are expected");
    require(numbers->count > 0, "a product has no facts");
    Polynomial found = {NULL, 0, 0};
    Term start = {factor, 0, NULL};
    add_term(&found, start);
    for (size_t k = 0; k < numbers->count; k++)
        found = product_of_polynomials(&found, &facts.all[position(&numbers->items[k], facts.count)]);
    return found;
}

static Polynomial term_of_zeros(const Value *pair) {
    require(is_list(pair, 2), "a polynomial and the number of a zero are expected");
    Polynomial factor = polynomial(&pair->items[0]);
    return product_of_polynomials(&factor, &zeros.all[position(&pair->items[1], zeros.count)]);
}

static void check_sum(const Value *of_facts, const Value *of_zeros) {
    require(of_facts->kind == LIST && of_facts->count <= MOST_ITEMS, "terms are expected");
    require(of_zeros->kind == LIST && of_zeros->count <= MOST_ITEMS, "terms of zeros are expected");
    Polynomial total = {NULL, 0, 0};
    for (size_t k = 0; k < of_facts->count; k++) {
        Polynomial term = term_of_facts(&of_facts->items[k]);
        add_polynomial(&total, &term);
    }
    for (size_t k = 0; k < of_zeros->count; k++) {
        Polynomial term = term_of_zeros(&of_zeros->items[k]);
        add_polynomial(&total, &term);
    }
    collect(&total);
    int is_negative = total.count == 1 && total.terms[0].degree == 0 && total.terms[0].factor.sign < 0;
    require(is_negative, "a sum is no negative number");
}

static void check_branch(const Value *condition, const Value *left, const Value *right) {
    Polynomial p = polynomial(condition);
    size_t mark = facts.count;
    learn(&facts, p);
    check(left);
    facts.count = mark;
    learn(&facts, negated(&p));
    check(right);
    facts.count = mark;
}

static void check_split(const Value *number, const Value *proofs) {
    const Choice *chosen = &choices[position(number, choice_count)];
    require(is_list(proofs, chosen->count), "a proof for each case is expected");
    size_t known_facts = facts.count, known_zeros = zeros.count;
    for (size_t k = 0; k < chosen->count; k++) {
        learn_all(&facts, &chosen->cases[k].facts);
        learn_all(&zeros, &chosen->cases[k].zeros);
        check(&proofs->items[k]);
        facts.count = known_facts;
        zeros.count = known_zeros;
    }
}

static void check(const Value *proof) {
    work(1);
    require(proof->kind == LIST && proof->count > 0, "a proof is a list that begins with its kind");
    const Value *parts = proof->items + 1;
    if (is_text(proof->items, "sum") && proof->count == 3)
        check_sum(&parts[0], &parts[1]);
    else if (is_text(proof->items, "branch") && proof->count == 4)
        check_branch(&parts[0], &parts[1], &parts[2]);
    else if (is_text(proof->items, "split") && proof->count == 3)
        check_split(&parts[0], &parts[1]);
    else
        answer("reject", "a proof is a sum, a branch or a split");
}

/* ---- Lines */

static void answer_line(void) {
    work_left = MOST_WORK;
    memset(names, 0, sizeof names);
    names_known = 0;
    if (setjmp(answered) == 0) {
        Value line = read_value(0);
        skip_blanks();
        if (at != end) malformed("something follows");
        read_question(&line);
        check(&line.items[3]);
        verdict = "accept";
        reason = "";
    }
    printf("%s%s%s\n", verdict, *reason ? " " : "", reason);
    release();
}

static char *read_all(size_t *length) {
    size_t room = 1 << 16, count = 0, got;
    char *text = malloc(room + 1);
    while (text != NULL && (got = fread(text + count, 1, room - count, stdin)) > 0) {
        count += got;
        if (count == room) text = realloc(text, (room *= 2) + 1);
    }
    if (text == NULL) {
        fputs("there is no memory for the questions\n", stderr);
        exit(1);
    }
    text[count] = 0;
    *length = count;
    return text;
}

int main(void) {
    size_t length;
    char *text = read_all(&length);
    for (const char *start = text; start < text + length; start = end + 1) {
        end = memchr(start, '\n', (size_t)(text + length - start));
        if (end == NULL) end = text + length;
        at = start;
        answer_line();
    }
    free(text);
    return 0;
}
