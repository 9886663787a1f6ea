/* What LLVM's code calls for memref.copy between memrefs with strides; Debian ships the runner without it. */
#include <stdint.h>
#include <string.h>

typedef struct { int64_t rank; void *descriptor; } Unranked;
typedef struct { char *allocated, *aligned; int64_t offset, numbers[]; } Descriptor;

void memrefCopy(int64_t size, const Unranked *source, const Unranked *target) {
    const Descriptor *from = source->descriptor, *to = target->descriptor;
    int64_t rank = source->rank, count = 1;
    for (int64_t axis = 0; axis < rank; axis++) count *= from->numbers[axis];
    for (int64_t number = 0; number < count; number++) {
        int64_t rest = number, read = from->offset, write = to->offset;
        for (int64_t axis = rank - 1; axis >= 0; axis--) {
            int64_t index = rest % from->numbers[axis];
            rest /= from->numbers[axis];
            read += index * from->numbers[rank + axis];
            write += index * to->numbers[rank + axis];
        }
        memcpy(to->aligned + write * size, from->aligned + read * size, size);
    }
}
