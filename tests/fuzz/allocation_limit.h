#ifndef KVASM_TESTS_FUZZ_ALLOCATION_LIMIT_H_
#define KVASM_TESTS_FUZZ_ALLOCATION_LIMIT_H_

// A model's memory may be any size that a file calls for; here more than 64 MB cannot
// be had, as on a small machine. What does not ask by Status then crashes.
extern "C" const char* __asan_default_options() {
  return "allocator_may_return_null=1:max_allocation_size_mb=64";
}

#endif  // KVASM_TESTS_FUZZ_ALLOCATION_LIMIT_H_
