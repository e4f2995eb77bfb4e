#include "artel/ps/known_values.h"

#include <algorithm>

#include "artel/ps/filters/value_packing.h"

namespace artel::ps {

std::span<float> KnownValues::of(const KeyRange& keys) {
  if (!memory_) memory_ = allocate_(keys_.size() * sizeof(float));
  return {reinterpret_cast<float*>(memory_.get()) + (keys.first - keys_.first), keys.size()};
}

std::span<const float> KnownValues::set(const KeyRange& keys, std::span<const float> values) {
  const std::span<float> known = of(keys);
  std::copy(values.begin(), values.end(), known.begin());
  return known;
}

void KnownValues::forget(const KeyRange& keys) {
  if (!memory_) return;
  const std::span<float> known = of(keys);
  std::fill(known.begin(), known.end(), 0.0f);
}

std::vector<std::byte> KnownValues::pack_changes(const KeyRange& keys,
                                                 const std::vector<uint64_t>* listed,
                                                 std::span<const float> values,
                                                 const Packing& packing) {
  const std::span<float> known = of(keys);
  const auto place = [&](size_t i) { return listed ? (*listed)[i] - keys.first : i; };
  std::vector<float> changes(values.begin(), values.end());
  std::vector<uint8_t> keep(packing.masked ? values.size() : 0);
  for (size_t i = 0; i < changes.size(); ++i) {
    changes[i] -= known[place(i)];
    if (packing.masked) keep[i] = changes[i] != 0 ? 1 : 0;
  }
  std::vector<std::byte> bytes = pack_values(changes, keep, packing.codec, packing.context);
  const std::vector<float> sent =
      unpack_values(bytes, changes.size(), packing.masked, packing.codec);
  for (size_t i = 0; i < sent.size(); ++i) known[place(i)] += sent[i];
  return bytes;
}

}  // namespace artel::ps
