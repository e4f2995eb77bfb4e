// Gradient codecs: fewer bytes on the wire, for a loss of precision that later steps make up for.
//
//   const auto codec = artel::comm::make_codec("int8");
//   artel::comm::ErrorFeedback feedback;  // one for each bucket
//   std::vector<float> gradients(1000, 0.5f);
//   if (artel::comm::Group* group = cluster.group())
//     codec->all_reduce(*group, {.seed = 7, .step = 1}, feedback, gradients, /*mean=*/true);
//
// A codec turns floats into bytes and back. It has no state: equal inputs and contexts give equal
// bytes on every machine of one kind. The size of a message depends only on the number of floats,
// so peers know what to expect. Finite values decode to finite values; NaN and infinity stay
// visible (perhaps spread over their block) and are never hidden.
//
// Codecs may be used by many threads at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "artel/comm/codecs/error_feedback.h"

namespace artel::comm {

class Group;

// Determines the random numbers: equal contexts give equal numbers.
struct CodecContext {
  uint64_t seed = 0;
  int64_t step = 0;
  uint64_t stream = 0;  // which tensor or bucket, and of which rank
  uint64_t key() const;
};

class Codec {
 public:
  virtual ~Codec() = default;

  // In the form that make_codec reads.
  virtual std::string name() const = 0;

  // The exact encoded size of this many floats.
  virtual size_t encoded_bytes(size_t floats) const = 0;

  // `out` has encoded_bytes(values.size()) bytes, at any address.
  void encode(const CodecContext& context, std::span<const float> values,
              std::span<std::byte> out) const;

  // sum += scale * decoded. Throws for bytes that `encode` cannot have written (the sum is then
  // undefined) and never reads or writes outside its arguments.
  void decode_add(std::span<const std::byte> in, std::span<float> sum, float scale = 1) const;

  // Replaces the values by their sum (or mean) over the group, the same bits on every rank and on
  // every transport. The context names the bucket and is the same on all ranks; the feedback
  // belongs to this bucket on this rank.
  //
  // Two stages: rank p gets the encoded part p of all ranks, adds them in the order of ranks, and
  // sends its encoded sum to all. Error feedback covers the loss of both stages. Costs two
  // collectives, in which each rank sends and receives 2 (N-1)/N times the encoded size.
  virtual void all_reduce(Group& group, const CodecContext& context, ErrorFeedback& feedback,
                          std::span<float> values, bool mean) const;

 private:
  virtual void write(const CodecContext& context, std::span<const float> values,
                     std::byte* out) const = 0;
  virtual void add_read(std::span<const std::byte> in, std::span<float> sum, float scale) const = 0;
};

// A codec's name in texts: a word and, for some, an argument ("top-k 1%").
struct CodecDefinition {
  std::string name;
  std::string usual_argument = {};  // empty: it takes none
  // Gets the argument of the text, or the usual one. Throws for one that makes no sense.
  std::function<std::unique_ptr<Codec>(std::string_view argument)> make = {};
};

// Registers a custom codec. Replaces one that the program registered earlier. Throws for a built-in
// name. All workers and servers must register the same codecs.
void register_codec(CodecDefinition definition);

// "none", "fp16", "bf16", "int8", "sign", "top-k 1%" (the share that is sent), "powersgd 4" (the
// rank), or a registered one. Throws for anything else, suggesting the nearest name.
std::unique_ptr<Codec> make_codec(std::string_view text);

// The forms that make_codec accepts, for messages and help.
std::vector<std::string> codec_names();

}  // namespace artel::comm
