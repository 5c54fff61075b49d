// Sequence::Save and Sequence::Restore: a conversation's ids and cache as bytes.
//
// Little endian: the header below, the ids (int32), the blocks that are held, a
// checksum of all before it. Blocks are saved as they lie in memory, which is the same
// in every build. The state fits an engine with the same model, dtype and window, and a
// context that is long enough.

#include <bit>
#include <cstring>
#include <string>
#include <type_traits>

#include "engine/sequence.h"

namespace kvasm {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr uint64_t kMagic = 0x31564B6D7361766Bu;  // "kvasmKV1"
constexpr uint32_t kVersion = 1;

struct Header {
  uint64_t magic;
  uint32_t version;
  uint32_t dtype;
  uint64_t fingerprint;
  uint64_t window;
  uint64_t ids;
  uint64_t computed;
  uint64_t first_token;
};
static_assert(sizeof(Header) == 56 && std::is_trivially_copyable_v<Header>);

// FNV-1a, 64 bits: against damage, not against malice.
uint64_t Checksum(std::span<const uint8_t> bytes) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (const uint8_t byte : bytes) hash = (hash ^ byte) * 0x100000001B3u;
  return hash;
}

Status Refuse(const char* why) {
  return Status(StatusCode::kInvalidArgument, std::string("the saved state ") + why);
}

}  // namespace

StatusOr<std::vector<uint8_t>> Sequence::Save() const {
  if (strategy_ != CacheStrategy::kBlock || output_ != Output::kTokens) {
    return Status(StatusCode::kInvalidArgument,
                  "only sequences that draw tokens with the block cache can be saved");
  }
  const Header header = {kMagic,
                         kVersion,
                         static_cast<uint32_t>(cache_.geometry().dtype),
                         engine_->Fingerprint(),
                         cache_.window(),
                         ids_.size(),
                         computed_,
                         cache_.first_token()};
  const size_t block_bytes = cache_.geometry().BlockBytes();
  std::vector<uint8_t> bytes;
  const auto append = [&](const void* data, size_t size) {
    const uint8_t* from = static_cast<const uint8_t*>(data);
    bytes.insert(bytes.end(), from, from + size);
  };
  bytes.reserve(sizeof(header) + ids_.size() * sizeof(int32_t) +
                BlocksFor(cache_.held_tokens()) * block_bytes + sizeof(uint64_t));
  append(&header, sizeof(header));
  append(ids_.data(), ids_.size() * sizeof(int32_t));
  for (size_t b = cache_.first_token() / kBlockTokens; b < cache_.table_size(); ++b) {
    append(engine_->pool_.Data(cache_.block(b)), block_bytes);
  }
  const uint64_t checksum = Checksum(bytes);
  append(&checksum, sizeof(checksum));
  return bytes;
}

StatusOr<std::unique_ptr<Sequence>> Sequence::Restore(Engine* engine,
                                                      std::span<const uint8_t> bytes) {
  Header header;
  uint64_t checksum;
  if (bytes.size() < sizeof(header) + sizeof(checksum)) return Refuse("is truncated");
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.magic != kMagic) {
    return Refuse("is not one: its first bytes are not kvasm's");
  }
  if (header.version != kVersion) return Refuse("is of another version of kvasm");
  const std::span<const uint8_t> content = bytes.first(bytes.size() - sizeof(checksum));
  std::memcpy(&checksum, bytes.data() + content.size(), sizeof(checksum));
  if (Checksum(content) != checksum) {
    return Refuse("is damaged: its checksum does not match");
  }

  const KvGeometry& geometry = engine->pool().geometry();
  if (header.fingerprint != engine->Fingerprint()) return Refuse("is another model's");
  if (header.dtype != static_cast<uint32_t>(geometry.dtype)) {
    return Refuse("has another kvDtype than the engine");
  }
  if (header.window != engine->options().window) {
    return Refuse("has another window than the engine");
  }
  if (header.ids > engine->context_length() + 1 || header.computed > header.ids ||
      header.computed > engine->context_length() ||
      header.first_token > header.computed || header.first_token % kBlockTokens != 0) {
    return Refuse("does not fit into the engine's context");
  }
  const size_t n_ids = static_cast<size_t>(header.ids);
  const size_t computed = static_cast<size_t>(header.computed);
  const size_t first_block = static_cast<size_t>(header.first_token) / kBlockTokens;
  const size_t ids_bytes = n_ids * sizeof(int32_t);
  const size_t blocks_bytes =
      (BlocksFor(computed) - first_block) * geometry.BlockBytes();
  if (content.size() != sizeof(header) + ids_bytes + blocks_bytes) {
    return Refuse("is longer or shorter than its header says");
  }
  std::unique_ptr<Sequence> sequence(new Sequence(engine, CacheStrategy::kBlock));
  sequence->paused_ = true;
  sequence->ids_.resize(n_ids);
  const uint8_t* from = content.data() + sizeof(header);
  std::memcpy(sequence->ids_.data(), from, ids_bytes);
  KVASM_RETURN_IF_ERROR(engine->CheckIds(sequence->ids_));
  KVASM_RETURN_IF_ERROR(sequence->Configure({}));
  KVASM_RETURN_IF_ERROR(sequence->cache_.Load(computed, first_block, from + ids_bytes));
  sequence->computed_ = computed;
  return sequence;
}

}  // namespace kvasm
