// A million tokens through one small cache.

#include <gtest/gtest.h>
#include <malloc.h>

#include "allocation_counter.h"
#include "engine/sequence.h"
#include "random_model.h"

namespace kvasm {
namespace {

// Sanitizers make each token some twenty times slower.
#if defined(__SANITIZE_ADDRESS__)
constexpr size_t kTokens = 50'000;
#else
constexpr size_t kTokens = 1'000'000;
#endif

TEST(EnduranceTest, AMillionTokensWithAWindowLeaveHeapAndPoolAsTheyWere) {
  TestRandom random(80);
  const Gpt2Config config = {.n_layer = 1,
                             .n_head = 1,
                             .n_kv_head = 1,
                             .n_embd = 8,
                             .n_inner = 8,
                             .n_positions = 256,
                             .vocab_size = 16};
  auto engine = RandomEngine(config, random, {.window = 40});
  auto sequence = std::move(*engine->StartSequence(
      std::vector<int32_t>{1, 2, 3}, {.overflow = Overflow::kShift, .n_keep = 3}));
  const auto tokens_until = [&](size_t tokens) {
    for (size_t t = 0; t < tokens; ++t) NextToken(sequence.get());
  };
  // Past the first shift, so that every path has been taken once.
  tokens_until(1000);
  const size_t allocations = AllocationCount();
  const MemoryUse memory = engine->Memory();
  const size_t heap = mallinfo2().uordblks;
  tokens_until(kTokens);
  EXPECT_EQ(AllocationCount(), allocations);
  EXPECT_EQ(mallinfo2().uordblks, heap);
  EXPECT_EQ(engine->Memory().kv_reserved_bytes, memory.kv_reserved_bytes);
  EXPECT_LE(engine->Memory().kv_tokens, 40 + kBlockTokens);
  sequence.reset();
  EXPECT_EQ(engine->pool().free_blocks() + engine->prefix_stats()->blocks,
            engine->pool().blocks());
}

}  // namespace
}  // namespace kvasm
