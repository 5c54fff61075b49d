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
#include "engine/engine.h"
#include "engine/sequence.h"
#include "formats/safetensors.h"
#include "model/gpt2_checkpoint.h"
#include "model/gpt2_config.h"

namespace kvasm {
namespace {

using emscripten::val;

// What Sequence.step() returns where it yields no token.
constexpr int kStepPrefill = -1;
constexpr int kStepFailed = -2;

constexpr size_t kStagingBytes = 256 * 1024;

struct JsStatus {
  std::string code;
  std::string message;
};

JsStatus ToJs(const Status& status) {
  return {StatusCodeName(status.code()), status.message()};
}

// Sizes are doubles in JavaScript: exact up to 2^53, beyond what a 32-bit memory holds.
struct JsConfig {
  int n_layer, n_head, n_kv_head, n_embd, n_inner, n_positions, vocab_size;
  double layer_norm_epsilon;
  int eos_token_id;
};

struct JsMemory {
  double weights, activations, kv_reserved, kv_used, kv_per_token, kv_tokens;
};

struct JsSequenceOptions {
  int cache;
  double temperature;
  double top_k;
  double top_p;
  uint32_t seed_low;
  uint32_t seed_high;
  double vocab_limit;
};

class JsEngine;

class JsSequence {
 public:
  JsSequence(JsEngine* engine, const val& prompt, const JsSequenceOptions& options);
  ~JsSequence();
  JsSequence(const JsSequence&) = delete;
  JsSequence& operator=(const JsSequence&) = delete;

  JsStatus status() const { return ToJs(status_); }
  int Step() {
    if (sequence_ == nullptr) return kStepFailed;
    const StatusOr<Sequence::StepResult> result = sequence_->Step();
    if (!result.ok()) {
      status_ = result.status();
      return kStepFailed;
    }
    return result.value().kind == Sequence::StepKind::kToken ? result.value().token
                                                             : kStepPrefill;
  }
  val Logits() const {
    if (sequence_ == nullptr) return val::null();
    return val(
        emscripten::typed_memory_view(sequence_->logits_size(), sequence_->logits()));
  }
  double Remaining() const {
    return sequence_ ? static_cast<double>(sequence_->remaining()) : 0;
  }
  double Prefilled() const {
    return sequence_ ? static_cast<double>(sequence_->prefilled()) : 0;
  }

 private:
  JsEngine* engine_;
  std::unique_ptr<Sequence> sequence_;
  Status status_;
};

class JsEngine {
 public:
  explicit JsEngine(std::unique_ptr<Engine> engine) : engine_(std::move(engine)) {}

  JsConfig config() const {
    const Gpt2Config& c = engine_->config();
    const auto i = [](size_t n) { return static_cast<int>(n); };
    return {i(c.n_layer),    i(c.n_head),          i(c.n_kv_head),
            i(c.n_embd),     i(c.n_inner),         i(c.n_positions),
            i(c.vocab_size), c.layer_norm_epsilon, c.eos_token_id};
  }

  JsMemory memory() const {
    const MemoryUse m = engine_->Memory(active_);
    const auto d = [](size_t n) { return static_cast<double>(n); };
    return {d(m.weights_bytes), d(m.activation_bytes),   d(m.kv_reserved_bytes),
            d(m.kv_used_bytes), d(m.kv_bytes_per_token), d(m.kv_tokens)};
  }

  JsSequence* CreateSequence(const val& prompt, const JsSequenceOptions& options) {
    return new JsSequence(this, prompt, options);
  }

 private:
  friend class JsSequence;
  std::unique_ptr<Engine> engine_;
  Sequence* active_ = nullptr;
};

JsSequence::JsSequence(JsEngine* engine, const val& prompt,
                       const JsSequenceOptions& options)
    : engine_(engine) {
  if (engine->active_ != nullptr) {
    status_ = Status(StatusCode::kInvalidArgument,
                     "a sequence is under way; delete it before starting the next");
    return;
  }
  const std::vector<int32_t> ids =
      emscripten::convertJSArrayToNumberVector<int32_t>(prompt);
  StatusOr<std::unique_ptr<Sequence>> sequence = engine->engine_->StartSequence(
      ids, {.cache = static_cast<CacheStrategy>(options.cache),
            .sampler = {.temperature = static_cast<float>(options.temperature),
                        .top_k = static_cast<size_t>(options.top_k),
                        .top_p = static_cast<float>(options.top_p),
                        .seed = static_cast<uint64_t>(options.seed_high) << 32 |
                                options.seed_low},
            .vocab_limit = static_cast<size_t>(options.vocab_limit)});
  if (!sequence.ok()) {
    status_ = sequence.status();
    return;
  }
  sequence_ = std::move(*sequence);
  engine->active_ = sequence_.get();
}

JsSequence::~JsSequence() {
  if (sequence_ != nullptr) engine_->active_ = nullptr;
}

class JsLoader {
 public:
  JsLoader(const std::string& config_json, double context_length)
      : options_{.context_length = static_cast<size_t>(context_length)} {
    StatusOr<Gpt2Config> config = ParseGpt2Config(config_json);
    if (!config.ok()) {
      status_ = config.status();
      return;
    }
    sink_ = std::make_unique<Gpt2CheckpointSink>(config.value());
    reader_ = std::make_unique<SafetensorsReader>(sink_.get());
    status_ = Allocate(kStagingBytes, "the staging buffer", &staging_);
  }
  JsLoader(const JsLoader&) = delete;
  JsLoader& operator=(const JsLoader&) = delete;

  JsStatus status() const { return ToJs(status_); }
  double StagingAddress() const {
    return static_cast<double>(reinterpret_cast<uintptr_t>(staging_.data()));
  }
  double StagingSize() const { return static_cast<double>(staging_.size()); }
  JsStatus Consume(double count) {
    if (status_.ok()) {
      status_ = reader_->Consume(staging_.data(), static_cast<size_t>(count));
    }
    return status();
  }
  double FileBytes() const {
    return reader_ ? static_cast<double>(reader_->file_bytes()) : 0;
  }
  JsStatus Finish() {
    if (status_.ok()) status_ = reader_->Finish();
    if (!status_.ok()) return status();
    staging_ = {};
    StatusOr<std::unique_ptr<Engine>> engine =
        Engine::Create(std::move(sink_->weights()), options_);
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
  Status status_;
  std::unique_ptr<Gpt2CheckpointSink> sink_;
  std::unique_ptr<SafetensorsReader> reader_;
  AlignedBuffer<uint8_t> staging_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace

EMSCRIPTEN_BINDINGS(kvasm) {
  emscripten::value_object<JsStatus>("Status")
      .field("code", &JsStatus::code)
      .field("message", &JsStatus::message);
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
  emscripten::value_object<JsMemory>("Memory")
      .field("weights", &JsMemory::weights)
      .field("activations", &JsMemory::activations)
      .field("kvReserved", &JsMemory::kv_reserved)
      .field("kvUsed", &JsMemory::kv_used)
      .field("kvPerToken", &JsMemory::kv_per_token)
      .field("kvTokens", &JsMemory::kv_tokens);
  emscripten::value_object<JsSequenceOptions>("SequenceOptions")
      .field("cache", &JsSequenceOptions::cache)
      .field("temperature", &JsSequenceOptions::temperature)
      .field("topK", &JsSequenceOptions::top_k)
      .field("topP", &JsSequenceOptions::top_p)
      .field("seedLow", &JsSequenceOptions::seed_low)
      .field("seedHigh", &JsSequenceOptions::seed_high)
      .field("vocabLimit", &JsSequenceOptions::vocab_limit);
  emscripten::class_<JsSequence>("Sequence")
      .function("status", &JsSequence::status)
      .function("step", &JsSequence::Step)
      .function("logits", &JsSequence::Logits)
      .function("remaining", &JsSequence::Remaining)
      .function("prefilled", &JsSequence::Prefilled);
  emscripten::class_<JsEngine>("Engine")
      .function("config", &JsEngine::config)
      .function("memory", &JsEngine::memory)
      .function("createSequence", &JsEngine::CreateSequence,
                emscripten::allow_raw_pointers());
  emscripten::class_<JsLoader>("Loader")
      .constructor<const std::string&, double>()
      .function("status", &JsLoader::status)
      .function("stagingAddress", &JsLoader::StagingAddress)
      .function("stagingSize", &JsLoader::StagingSize)
      .function("consume", &JsLoader::Consume)
      .function("fileBytes", &JsLoader::FileBytes)
      .function("finish", &JsLoader::Finish)
      .function("takeEngine", &JsLoader::TakeEngine, emscripten::allow_raw_pointers());
}

}  // namespace kvasm
