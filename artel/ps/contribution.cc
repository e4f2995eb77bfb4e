#include "artel/ps/contribution.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "artel/base/error.h"
#include "artel/ps/filters/value_packing.h"

namespace artel::ps {
namespace {

// Index of the first value that is not finite, or the size.
size_t first_not_finite(std::span<const float> values) {
  constexpr uint32_t kInfinity = 0x7f800000;
  constexpr size_t kPiece = 4096;
  for (size_t begin = 0; begin < values.size(); begin += kPiece) {
    const size_t end = std::min(values.size(), begin + kPiece);
    uint32_t any = 0;  // branch-free, so compilers vectorise it
    for (size_t i = begin; i < end; ++i)
      any |= static_cast<uint32_t>((std::bit_cast<uint32_t>(values[i]) & kInfinity) == kInfinity);
    if (any == 0) continue;
    for (size_t i = begin; i < end; ++i)
      if (!std::isfinite(values[i])) return i;
  }
  return values.size();
}

}  // namespace

Contribution read_contribution(const Message& message, const std::vector<uint64_t>* listed,
                               const comm::Group& group, const comm::Codec* codec) {
  const Header& header = message.header;
  Contribution contribution = {
      .lanes = {header.first_lane, header.last_lane}, .partials = {}, .listed = listed};
  const size_t count = listed ? listed->size() : header.keys.size();
  const auto partials = static_cast<size_t>(header.partials);
  if (header.has(in_place)) {
    require(message.values.size() == partials * sizeof(uint64_t), ErrorKind::invalid_argument,
            "[ps] push: got {} bytes of places, expected {}", message.values.size(),
            partials * sizeof(uint64_t));
    for (size_t i = 0; i < partials; ++i) {
      uint64_t place = 0;
      std::memcpy(&place, message.values.data() + i * sizeof place, sizeof place);
      const std::byte* data = group.at_place(place, count * sizeof(float));
      require(data != nullptr, ErrorKind::invalid_argument,
              "[ps] push: place {} with {} floats is not in shared memory", place, count);
      contribution.partials.push_back(reinterpret_cast<const float*>(data));
    }
    return contribution;
  }
  require(partials == 1 || !(header.has(masked) || header.has(coded)), ErrorKind::invalid_argument,
          "[ps] push: got {} packed sums, expected one", partials);
  require(codec != nullptr || !header.has(coded), ErrorKind::invalid_argument,
          "[ps] push: values are encoded, but the setup names no codec");
  contribution.owned = unpack_values(message.values, count * partials, header.has(masked),
                                     header.has(coded) ? codec : nullptr);
  for (size_t i = 0; i < partials; ++i)
    contribution.partials.push_back(contribution.owned.data() + i * count);
  return contribution;
}

void require_finite(const Contribution& contribution, const KeyRange& keys,
                    const std::function<std::string(uint64_t key)>& name_of) {
  const size_t count = contribution.listed ? contribution.listed->size() : keys.size();
  for (const float* partial : contribution.partials) {
    const size_t bad = first_not_finite({partial, count});
    if (bad == count) continue;
    const uint64_t key = contribution.listed ? (*contribution.listed)[bad] : keys.first + bad;
    fail(ErrorKind::numeric,
         "[ps] push: got {} for key {} of '{}', expected finite numbers; set check_numbers = "
         "true to find the first op whose output is not finite",
         partial[bad], key, name_of(key));
  }
}

}  // namespace artel::ps
