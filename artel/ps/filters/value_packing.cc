#include "artel/ps/filters/value_packing.h"

#include <cstring>

#include "artel/base/error.h"

namespace artel::ps {
namespace {

size_t mask_bytes(size_t count) { return (count + 7) / 8; }

size_t packed_bytes(size_t count, const comm::Codec* codec) {
  return codec ? codec->encoded_bytes(count) : count * sizeof(float);
}

}  // namespace

std::vector<std::byte> pack_values(std::span<const float> values, std::span<const uint8_t> keep,
                                   const comm::Codec* codec, const comm::CodecContext& context,
                                   std::span<float> lost) {
  std::vector<std::byte> bytes;
  std::vector<float> kept;
  std::span<const float> sent = values;
  if (!keep.empty()) {
    bytes.resize(mask_bytes(values.size()));
    for (size_t i = 0; i < values.size(); ++i) {
      if (keep[i] == 0) continue;
      bytes[i / 8] |= std::byte{1} << (i % 8);
      kept.push_back(values[i]);
    }
    sent = kept;
  }
  const size_t begin = bytes.size();
  bytes.resize(begin + packed_bytes(sent.size(), codec));
  if (sent.empty()) return bytes;
  if (!codec) {
    std::memcpy(bytes.data() + begin, sent.data(), sent.size_bytes());
    return bytes;
  }
  codec->encode(context, sent, std::span(bytes).subspan(begin));
  if (lost.empty()) return bytes;
  std::vector<float> error(sent.begin(), sent.end());
  codec->decode_add(std::span(bytes).subspan(begin), error, -1);
  for (size_t i = 0, next = 0; i < values.size(); ++i)
    if (keep.empty() || keep[i] != 0) lost[i] = error[next++];
  return bytes;
}

std::vector<float> unpack_values(std::span<const std::byte> bytes, size_t count, bool masked,
                                 const comm::Codec* codec, std::vector<uint8_t>* present) {
  std::vector<uint8_t> mask(count, 1);
  size_t kept = count;
  if (masked) {
    require(bytes.size() >= mask_bytes(count), ErrorKind::corrupt,
            "[ps] values: got {} bytes, expected at least {} of a mask for {} keys", bytes.size(),
            mask_bytes(count), count);
    kept = 0;
    for (size_t i = 0; i < count; ++i) {
      mask[i] = std::to_integer<int>(bytes[i / 8] >> (i % 8)) & 1;
      kept += mask[i];
    }
    bytes = bytes.subspan(mask_bytes(count));
  }
  require(bytes.size() == packed_bytes(kept, codec), ErrorKind::corrupt,
          "[ps] values: got {} bytes for {} of {} keys, expected {}", bytes.size(), kept, count,
          packed_bytes(kept, codec));
  std::vector<float> sent(kept, 0.0f);
  if (codec && kept > 0)
    codec->decode_add(bytes, sent);
  else if (kept > 0)
    std::memcpy(sent.data(), bytes.data(), bytes.size());
  if (present) *present = mask;
  if (!masked) return sent;
  std::vector<float> values(count, 0.0f);
  for (size_t i = 0, next = 0; i < count; ++i)
    if (mask[i] != 0) values[i] = sent[next++];
  return values;
}

}  // namespace artel::ps
