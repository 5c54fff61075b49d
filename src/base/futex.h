// Sleeping until a word in memory changes.

#ifndef KVASM_BASE_FUTEX_H_
#define KVASM_BASE_FUTEX_H_

#include <atomic>
#include <cstdint>

namespace kvasm {

#if defined(__wasm_atomics__)
inline void WaitInstruction(int32_t* word, int32_t expected) {
  constexpr int64_t kForever = -1;
  __builtin_wasm_memory_atomic_wait32(word, expected, kForever);
}
#endif

// Sleeps while `word` is `expected`, until another thread wakes it; may wake for no
// reason. Both the look at the word and the sleep are one step to whoever changes the
// word first and wakes then.
inline void FutexWait(std::atomic<uint32_t>* word, uint32_t expected) {
#if defined(__wasm_atomics__)
  // In a function of its own that no optimiser can inline: Node 20's baseline compiler
  // for WebAssembly mixes up the registers of what follows the instruction in the same
  // function. Seen as pieces of a thread pool that were done and stayed pending.
  static void (*volatile wait)(int32_t*, int32_t) = &WaitInstruction;
  wait(reinterpret_cast<int32_t*>(word), static_cast<int32_t>(expected));
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
