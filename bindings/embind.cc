// The core as JavaScript objects. bindings/ts/wasm-module.ts says what each of them
// means.

#include <emscripten/bind.h>
#include <emscripten/val.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/status.h"
#include "bindings/js_attention.h"
#include "bindings/js_gguf_tokenizer.h"
#include "bindings/js_sequence.h"
#include "bindings/js_values.h"
#include "bindings/threads.h"
#include "engine/engine.h"
#include "engine/sequence.h"
#include "model/attention_weights.h"
#include "model/gpt2_config.h"
#include "model/gpt2_loader.h"

namespace kvasm {
namespace {

using emscripten::val;
// The one below would hide them.
using kvasm::ToJs;

constexpr size_t kStagingBytes = 256 * 1024;

struct JsConfig {
  int n_layer, n_head, n_kv_head, n_embd, n_inner, n_positions, vocab_size;
  double layer_norm_epsilon;
  int eos_token_id;
};

JsConfig ConfigToJs(const Gpt2Config& c) {
  const auto i = [](size_t n) { return static_cast<int>(n); };
  return {i(c.n_layer),    i(c.n_head),          i(c.n_kv_head),
          i(c.n_embd),     i(c.n_inner),         i(c.n_positions),
          i(c.vocab_size), c.layer_norm_epsilon, c.eos_token_id};
}

struct JsEngineOptions {
  int dtype;
  double context_length;
  double window;
  int kv_dtype;
  double kv_bytes;
  bool prefix_cache;
  double prefill_chunk;
};

struct JsMemory {
  double weights, activations, kv_reserved, kv_used, kv_shared, kv_cached, kv_per_token,
      kv_tokens;
};

struct JsPrefixStats {
  double lookups, hits, tokens_reused, blocks, evictions;
};

class JsEngine {
 public:
  explicit JsEngine(std::unique_ptr<Engine> engine) : engine_(std::move(engine)) {}

  JsConfig config() const { return ConfigToJs(engine_->config()); }

  JsMemory memory() const {
    const MemoryUse m = engine_->Memory();
    return {ToJs(m.weights_bytes),      ToJs(m.activation_bytes),
            ToJs(m.kv_reserved_bytes),  ToJs(m.kv_used_bytes),
            ToJs(m.kv_shared_bytes),    ToJs(m.kv_cached_bytes),
            ToJs(m.kv_bytes_per_token), ToJs(m.kv_tokens)};
  }

  JsPrefixStats PrefixStats() const {
    const PrefixTreeStats* stats = engine_->prefix_stats();
    const PrefixTreeStats s = stats ? *stats : PrefixTreeStats();
    const auto d = [](uint64_t n) { return static_cast<double>(n); };
    return {d(s.lookups), d(s.hits), d(s.tokens_reused), d(s.blocks), d(s.evictions)};
  }

  JsSequence* StartSequence(const val& prompt, const JsSequenceOptions& options) {
    return new JsSequence(engine_->StartSequence(
        emscripten::convertJSArrayToNumberVector<int32_t>(prompt), FromJs(options)));
  }

  JsSequence* RestoreSequence(const val& bytes) {
    return new JsSequence(Sequence::Restore(
        engine_.get(), emscripten::convertJSArrayToNumberVector<uint8_t>(bytes)));
  }

  JsAttention* Attention(const val& ids, double layer, double head) const {
    const EngineOptions& options = engine_->options();
    const std::vector<int32_t> tokens =
        emscripten::convertJSArrayToNumberVector<int32_t>(ids);
    return new JsAttention(AttentionWeights(
        engine_->weights(), tokens,
        {.layer = static_cast<size_t>(layer),
         .head = head < 0 ? AttentionQuery::kAllHeads : static_cast<size_t>(head),
         .window = options.window,
         .kv_dtype = options.kv_dtype}));
  }

  // [id, kind, token] for each event.
  val Step() {
    numbers_.clear();
    for (const StepEvent& event : engine_->Step()) {
      numbers_.push_back(static_cast<int32_t>(event.sequence->id()));
      numbers_.push_back(static_cast<int32_t>(event.kind));
      numbers_.push_back(event.token);
    }
    return View(numbers_);
  }

  // [blocks, tokens per block, copies,
  //  for each block: refs, tokens of it that the prefix tree knows, the logical time of
  //  its last use there, sequences, for each: id, tokens, length of its table, the
  //  table].
  val CacheView() {
    const BlockPool& pool = engine_->pool();
    const PrefixTree* tree = engine_->prefix_tree();
    numbers_.clear();
    const auto add = [this](uint64_t n) {
      numbers_.push_back(static_cast<int32_t>(n));
    };
    add(pool.blocks());
    add(kBlockTokens);
    add(pool.copies());
    for (size_t b = 0; b < pool.blocks(); ++b) {
      const BlockId block = static_cast<BlockId>(b);
      const bool in_tree = tree != nullptr && tree->Holds(block);
      add(pool.refs(block));
      add(in_tree ? tree->tokens(block) : 0);
      add(in_tree ? tree->last_use(block) : 0);
    }
    add(engine_->sequences().size());
    for (const Sequence* sequence : engine_->sequences()) {
      // Textbook sequences have no blocks in the pool.
      const bool has_blocks = sequence->strategy() == CacheStrategy::kBlock;
      const KvCache& cache = sequence->cache();
      add(sequence->id());
      add(has_blocks ? cache.tokens() : 0);
      add(has_blocks ? cache.table_size() : 0);
      for (size_t b = 0; has_blocks && b < cache.table_size(); ++b) {
        numbers_.push_back(cache.block(b));
      }
    }
    return View(numbers_);
  }

 private:
  std::unique_ptr<Engine> engine_;
  std::vector<int32_t> numbers_;  // Behind the views that are handed out.
};

class JsLoader {
 public:
  JsLoader(const std::string& config_json, const JsEngineOptions& options)
      : options_{.context_length = static_cast<size_t>(options.context_length),
                 .window = static_cast<size_t>(options.window),
                 .kv_dtype = static_cast<KvDtype>(options.kv_dtype),
                 .kv_bytes = static_cast<size_t>(options.kv_bytes),
                 .prefix_cache = options.prefix_cache,
                 .prefill_chunk = static_cast<size_t>(options.prefill_chunk),
                 .thread_pool = SharedThreadPool()},
        loader_(static_cast<WeightDtype>(options.dtype)) {
    if (!config_json.empty()) status_ = loader_.SetConfig(config_json);
    if (status_.ok()) {
      status_ = Allocate(kStagingBytes, "the staging buffer", &staging_);
    }
  }
  JsLoader(const JsLoader&) = delete;
  JsLoader& operator=(const JsLoader&) = delete;

  JsStatus status() const { return ToJs(status_); }
  double StagingAddress() const {
    return ToJs(reinterpret_cast<uintptr_t>(staging_.data()));
  }
  double StagingSize() const { return ToJs(staging_.size()); }
  JsStatus SetIndex(const std::string& json) {
    if (status_.ok()) status_ = loader_.SetIndex(json);
    return status();
  }
  val Shards() const { return val::array(loader_.shards()); }
  JsStatus NextFile(const std::string& name) {
    if (status_.ok()) status_ = loader_.NextFile(name);
    return status();
  }
  JsStatus Consume(double count) {
    if (status_.ok()) {
      status_ = loader_.Consume(staging_.data(), static_cast<size_t>(count));
    }
    return status();
  }
  double FileBytes() const { return static_cast<double>(loader_.file_bytes()); }
  val Config() const {
    return loader_.config() == nullptr ? val::null()
                                       : val(ConfigToJs(*loader_.config()));
  }
  val GgufTokenizer() const {
    const GgufMetadata* metadata = loader_.gguf();
    return metadata == nullptr ? val::null() : GgufTokenizerToJs(*metadata);
  }
  JsStatus Finish() {
    if (status_.ok()) status_ = loader_.Finish();
    if (!status_.ok()) return status();
    staging_ = {};
    StatusOr<std::unique_ptr<Engine>> engine =
        Engine::Create(std::move(loader_.weights()), options_);
    if (engine.ok()) {
      engine_ = std::move(*engine);
    } else {
      status_ = engine.status();
    }
    return status();
  }
  JsEngine* TakeEngine() { return new JsEngine(std::move(engine_)); }

 private:
  EngineOptions options_;
  Gpt2Loader loader_;
  Status status_;
  AlignedBuffer<uint8_t> staging_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace

EMSCRIPTEN_BINDINGS(kvasm) {
  using emscripten::allow_raw_pointers;
  emscripten::value_object<JsConfig>("Config")
      .field("nLayer", &JsConfig::n_layer)
      .field("nHead", &JsConfig::n_head)
      .field("nKvHead", &JsConfig::n_kv_head)
      .field("nEmbd", &JsConfig::n_embd)
      .field("nInner", &JsConfig::n_inner)
      .field("nPositions", &JsConfig::n_positions)
      .field("vocabSize", &JsConfig::vocab_size)
      .field("layerNormEpsilon", &JsConfig::layer_norm_epsilon)
      .field("eosTokenId", &JsConfig::eos_token_id);
  emscripten::value_object<JsEngineOptions>("EngineOptions")
      .field("dtype", &JsEngineOptions::dtype)
      .field("contextLength", &JsEngineOptions::context_length)
      .field("window", &JsEngineOptions::window)
      .field("kvDtype", &JsEngineOptions::kv_dtype)
      .field("kvBytes", &JsEngineOptions::kv_bytes)
      .field("prefixCache", &JsEngineOptions::prefix_cache)
      .field("prefillChunk", &JsEngineOptions::prefill_chunk);
  emscripten::value_object<JsMemory>("Memory")
      .field("weights", &JsMemory::weights)
      .field("activations", &JsMemory::activations)
      .field("kvReserved", &JsMemory::kv_reserved)
      .field("kvUsed", &JsMemory::kv_used)
      .field("kvShared", &JsMemory::kv_shared)
      .field("kvCached", &JsMemory::kv_cached)
      .field("kvPerToken", &JsMemory::kv_per_token)
      .field("kvTokens", &JsMemory::kv_tokens);
  emscripten::value_object<JsPrefixStats>("PrefixStats")
      .field("lookups", &JsPrefixStats::lookups)
      .field("hits", &JsPrefixStats::hits)
      .field("tokensReused", &JsPrefixStats::tokens_reused)
      .field("blocks", &JsPrefixStats::blocks)
      .field("evictions", &JsPrefixStats::evictions);
  emscripten::class_<JsEngine>("Engine")
      .function("config", &JsEngine::config)
      .function("memory", &JsEngine::memory)
      .function("prefixStats", &JsEngine::PrefixStats)
      .function("startSequence", &JsEngine::StartSequence, allow_raw_pointers())
      .function("restoreSequence", &JsEngine::RestoreSequence, allow_raw_pointers())
      .function("attention", &JsEngine::Attention, allow_raw_pointers())
      .function("step", &JsEngine::Step)
      .function("cacheView", &JsEngine::CacheView);
  emscripten::class_<JsLoader>("Loader")
      .constructor<const std::string&, const JsEngineOptions&>()
      .function("status", &JsLoader::status)
      .function("setIndex", &JsLoader::SetIndex)
      .function("shards", &JsLoader::Shards)
      .function("nextFile", &JsLoader::NextFile)
      .function("stagingAddress", &JsLoader::StagingAddress)
      .function("stagingSize", &JsLoader::StagingSize)
      .function("consume", &JsLoader::Consume)
      .function("fileBytes", &JsLoader::FileBytes)
      .function("config", &JsLoader::Config)
      .function("ggufTokenizer", &JsLoader::GgufTokenizer)
      .function("finish", &JsLoader::Finish)
      .function("takeEngine", &JsLoader::TakeEngine, allow_raw_pointers());
}

}  // namespace kvasm
