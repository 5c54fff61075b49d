// Saved sessions: as they are, and with the checksum made to fit, since chance finds
// none that does.

#include <cstring>

#include "engine/sequence.h"
#include "fuzz/session_model.h"
#include "fuzz/weights_fuzz.h"

namespace {

void RestoreAndGoOn(kvasm::Engine* engine, const std::vector<uint8_t>& state) {
  kvasm::StatusOr<std::unique_ptr<kvasm::Sequence>> restored =
      kvasm::Sequence::Restore(engine, state);
  if (!restored.ok()) {
    kvasm::Require(!restored.status().message().empty());
    return;
  }
  kvasm::Sequence* sequence = restored->get();
  // What was taken in can be saved, rolled back and gone on with.
  kvasm::StatusOr<std::vector<uint8_t>> saved = sequence->Save();
  kvasm::Require(saved.ok() && *saved == state);
  (void)sequence->Truncate(sequence->ids().size() / 2 + 1);
  const std::vector<int32_t> more = {1, 2};
  if (sequence->Append(more, {}).ok()) {
    sequence->set_paused(false);
    for (int i = 0; i < 30 && !engine->Step().empty(); ++i) {
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<uint8_t> state(data, data + size);
  for (const size_t window : kvasm::kSessionWindows) {
    const auto engine = kvasm::MakeSessionEngine(window);
    RestoreAndGoOn(engine.get(), state);
  }
  if (size < sizeof(uint64_t)) return 0;
  uint64_t checksum = 0xCBF29CE484222325u;
  const size_t content = size - sizeof(checksum);
  for (size_t i = 0; i < content; ++i) {
    checksum = (checksum ^ state[i]) * 0x100000001B3u;
  }
  std::memcpy(state.data() + content, &checksum, sizeof(checksum));
  for (const size_t window : kvasm::kSessionWindows) {
    const auto engine = kvasm::MakeSessionEngine(window);
    RestoreAndGoOn(engine.get(), state);
  }
  return 0;
}
