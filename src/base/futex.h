// Sleeping until a word in memory changes.

#ifndef KVASM_BASE_FUTEX_H_
#define KVASM_BASE_FUTEX_H_

#include <atomic>
#include <cstdint>

namespace kvasm {

// Sleeps while `word` is `expected`, until another thread wakes it; may wake for no
// reason. Both the look at the word and the sleep are one step to whoever changes the
// word first and wakes then.
inline void FutexWait(std::atomic<uint32_t>* word, uint32_t expected) {
#if defined(__wasm_atomics__)
  constexpr int64_t kForever = -1;
  __builtin_wasm_memory_atomic_wait32(reinterpret_cast<int32_t*>(word),
                                      static_cast<int32_t>(expected), kForever);
#elif !defined(__wasm__)
  word->wait(expected);
#else
  // A build without threads: nobody else could change the word.
  (void)word;
  (void)expected;
  __builtin_trap();
#endif
}

// Wakes up to `count` of those who sleep on `word`.
inline void FutexWake(std::atomic<uint32_t>* word, uint32_t count) {
#if defined(__wasm_atomics__)
  __builtin_wasm_memory_atomic_notify(reinterpret_cast<int32_t*>(word), count);
#elif !defined(__wasm__)
  for (uint32_t i = 0; i < count; ++i) word->notify_one();
#else
  (void)word;
  (void)count;
#endif
}

}  // namespace kvasm

#endif  // KVASM_BASE_FUTEX_H_
