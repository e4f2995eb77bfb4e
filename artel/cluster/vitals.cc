#include "artel/cluster/vitals.h"

#include <bit>
#include <cstring>

#include "artel/base/process.h"
#include "artel/base/time.h"

namespace artel {
namespace {

constexpr int64_t kMostCoordinate = 1 << 16;  // more than any mesh has workers or stages

using Words = std::array<uint64_t, sizeof(Vitals) / sizeof(uint64_t)>;

}  // namespace

std::string to_bytes(const Vitals& vitals) {
  return {reinterpret_cast<const char*>(&vitals), sizeof vitals};
}

std::optional<Vitals> vitals_from(std::string_view bytes) {
  Vitals vitals;
  if (bytes.size() < sizeof vitals) return {};
  std::memcpy(&vitals, bytes.data(), sizeof vitals);
  if (!(vitals.at > 0)) return {};
  const MeshCoordinates& mesh = vitals.mesh;
  for (const int64_t each : {mesh.data, mesh.stage, mesh.stages, mesh.pipeline, mesh.tensor})
    if (each < -1 || each > kMostCoordinate) return {};
  return vitals;
}

void VitalSigns::set(const Vitals& vitals) {
  const auto words = std::bit_cast<Words>(vitals);
  for (size_t i = 0; i < words.size(); ++i) words_[i].store(words[i], std::memory_order_relaxed);
}

void VitalSigns::count_push(int64_t staleness) {
  pushes_.fetch_add(1, std::memory_order_relaxed);
  staleness_.fetch_add(staleness, std::memory_order_relaxed);
}

Vitals VitalSigns::now() const {
  Words words;
  for (size_t i = 0; i < words.size(); ++i) words[i] = words_[i].load(std::memory_order_relaxed);
  auto vitals = std::bit_cast<Vitals>(words);
  vitals.at = std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
  vitals.processor_seconds = processor_seconds();
  vitals.memory_bytes = memory_bytes();
  vitals.step += pushes_.load(std::memory_order_relaxed);
  vitals.staleness += staleness_.load(std::memory_order_relaxed);
  return vitals;
}

}  // namespace artel
