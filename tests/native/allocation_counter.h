#ifndef KVASM_TESTS_NATIVE_ALLOCATION_COUNTER_H_
#define KVASM_TESTS_NATIVE_ALLOCATION_COUNTER_H_

#include <cstddef>

namespace kvasm {

// Calls so far of any function of the C library that allocates, in the whole process.
size_t AllocationCount();

}  // namespace kvasm

#endif  // KVASM_TESTS_NATIVE_ALLOCATION_COUNTER_H_
