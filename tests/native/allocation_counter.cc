#include "allocation_counter.h"

#include <atomic>
#include <cstdlib>

namespace kvasm {
namespace {

std::atomic<size_t> allocations{0};

}  // namespace

size_t AllocationCount() { return allocations; }

}  // namespace kvasm

#if defined(__SANITIZE_ADDRESS__)

// Declared here since not every compiler's package brings
// sanitizer/allocator_interface.h.
extern "C" int
__sanitizer_install_malloc_and_free_hooks(  // NOLINT(bugprone-reserved-identifier)
    void (*malloc_hook)(const volatile void*, size_t),
    void (*free_hook)(const volatile void*));

namespace {

const int kInstalled = __sanitizer_install_malloc_and_free_hooks(
    [](const volatile void*, size_t) { ++kvasm::allocations; },
    [](const volatile void*) {});

}  // namespace

#else

// glibc lets a program bring its own malloc, and keeps its own under these names.
extern "C" {
void* __libc_malloc(size_t size);                // NOLINT(bugprone-reserved-identifier)
void* __libc_calloc(size_t count, size_t size);  // NOLINT(bugprone-reserved-identifier)
void* __libc_realloc(void* old, size_t size);    // NOLINT(bugprone-reserved-identifier)
void* __libc_memalign(size_t align,
                      size_t size);  // NOLINT(bugprone-reserved-identifier)

void* malloc(size_t size) {
  ++kvasm::allocations;
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  ++kvasm::allocations;
  return __libc_calloc(count, size);
}
void* realloc(void* old, size_t size) {
  ++kvasm::allocations;
  return __libc_realloc(old, size);
}
void* aligned_alloc(size_t align, size_t size) {
  ++kvasm::allocations;
  return __libc_memalign(align, size);
}
}

#endif
