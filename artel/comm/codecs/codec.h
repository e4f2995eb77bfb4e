// Gradient codecs: fewer bytes on the wire for a loss that later steps make good.
//
// A codec turns floats into bytes and back. It has no state: equal inputs and contexts give equal
// bytes on every machine of one kind. The size of a message depends on the number of floats alone,
// so that peers need not tell each other what to expect. A finite value is decoded as a finite one;
// NaN and infinity stay visible as such (perhaps all over their block), never hidden.
//
// Codecs may be used by many threads at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "artel/comm/codecs/error_feedback.h"

namespace artel::comm {

class Group;

// What random numbers depend on: equal contexts give equal ones.
struct CodecContext {
  uint64_t seed = 0;
  int64_t step = 0;
  uint64_t stream = 0;  // which tensor or bucket, and whose
  uint64_t key() const;
};

class Codec {
 public:
  virtual ~Codec() = default;

  // As make_codec reads it.
  virtual std::string name() const = 0;

  // The exact size of the encoding of so many floats.
  virtual size_t encoded_bytes(size_t floats) const = 0;

  // `out` has encoded_bytes(values.size()) bytes, at any address.
  void encode(const CodecContext& context, std::span<const float> values,
              std::span<std::byte> out) const;

  // sum += scale * decoded. Throws for bytes that `encode` cannot have written (the sum is then
  // undefined) and never reads or writes outside of its arguments.
  void decode_add(std::span<const std::byte> in, std::span<float> sum, float scale = 1) const;

  // Replaces the values by their sum (or mean) over the group, the same bits on every rank and on
  // every transport. The context names the bucket and is the same on all ranks; the feedback is
  // the bucket's own, on this rank. Returns the bytes that this rank sent.
  //
  // Two stages: rank p gets the encoded part p of everybody, adds them in the order of ranks,
  // and sends its encoded sum to all; what either stage loses is fed back. Costs two collectives,
  // which together carry 2 (N-1)/N times the encoded size out of each rank and into it.
  virtual size_t all_reduce(Group& group, const CodecContext& context, ErrorFeedback& feedback,
                            std::span<float> values, bool mean) const;

 private:
  virtual void write(const CodecContext& context, std::span<const float> values,
                     std::byte* out) const = 0;
  virtual void add_read(std::span<const std::byte> in, std::span<float> sum, float scale) const = 0;
};

// "none", "fp16", "bf16", "int8", "sign", "top-k 1%" (the share that is sent) or "powersgd 4" (the
// rank). Throws for anything else, with the nearest name.
std::unique_ptr<Codec> make_codec(std::string_view text);

// The forms that make_codec accepts, for messages and help.
std::vector<std::string> codec_names();

}  // namespace artel::comm
