/*
 * A C program that calls a generated kernel and knows nothing of Python.
 *
 * The kernel sums the rows of a matrix of 16 rows and m columns, which it takes four columns to a tile: [16, (m + 3)/4, 4]. The columns that
 * fill the last tile up are padding, and its header lists it as a precondition that is not checked: padding holds 0.
 *
 *     caller [m]     prints the 16 sums (m is 14 unless given) and compares them with sums of its own; exit code 0 where they agree
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "row_sum.h"

enum { ROWS = 16, TILE = 4 };

/* The element in row i and column j. */
static float element(int32_t i, int32_t j) {
    return (float)((i * 31 + j * 17) % 23 - 11) / 8.0f;
}

/* Where the kernel's layout puts it: [i, j/4, j%4], row-major. */
static size_t place(int32_t i, int32_t j, int32_t tiles) {
    return ((size_t)i * (size_t)tiles + (size_t)(j / TILE)) * TILE + (size_t)(j % TILE);
}

static int sums_are_right(const float *sums, int32_t m) {
    for (int32_t i = 0; i < ROWS; ++i) {
        float sum = 0.0f;
        for (int32_t j = 0; j < m; ++j) {
            sum += element(i, j);
        }
        printf("row %2d: %g\n", (int)i, (double)sums[i]);
        if (memcmp(&sum, &sums[i], sizeof sum) != 0) {
            fprintf(stderr, "row %d should be %g\n", (int)i, (double)sum);
            return 0;
        }
    }
    return 1;
}

int main(int argc, char **argv) {
    const int32_t m = argc > 1 ? (int32_t)strtol(argv[1], NULL, 10) : 14;
    if (m < 0 || m > 1000000) {
        fprintf(stderr, "m is between 0 and 1000000\n");
        return 2;
    }
    const int32_t tiles = (m + TILE - 1) / TILE;
    const size_t cells = (size_t)ROWS * (size_t)tiles * TILE;
    float *matrix = calloc(cells > 0 ? cells : 1, sizeof *matrix); /* padding included, which thereby holds 0 */
    float *sums = malloc(ROWS * sizeof *sums);
    if (matrix == NULL || sums == NULL) {
        fprintf(stderr, "out of memory\n");
        return 2;
    }
    for (int32_t i = 0; i < ROWS; ++i) {
        for (int32_t j = 0; j < m; ++j) {
            matrix[place(i, j, tiles)] = element(i, j);
        }
    }
    int code = row_sum(matrix, sums, m);
    if (code != 0) {
        fprintf(stderr, "row_sum refused to run: %d\n", code);
        return 2;
    }
    int right = sums_are_right(sums, m);
    /* The kernel was proved for memory that does not overlap, and says so rather than give something else. */
    if (m > 0) {
        printf("an output inside the input: %d\n", row_sum(matrix, matrix, m));
    }
    printf("an extent below zero: %d\n", row_sum(matrix, sums, -1));
    free(matrix);
    free(sums);
    return right ? 0 : 1;
}
