#include "artel/predict/decoder.h"

#include <numeric>

#include "artel/base/error.h"
#include "artel/exec/libraries.h"
#include "artel/predict/load_weights.h"

namespace artel {

struct Decoder::Compiled {
  Program program;
  std::unique_ptr<Lane> lane;
};

Decoder::Decoder(const Model& model, int threads)
    : model_(model), threads_(threads), pool_(threads, limit_library_threads) {
  const Program& program = compiled(1).program;
  for (const ValueId id : program.graph().of_kind(ValueKind::state))
    if (is_cache(program.graph().value(id).name)) positions_ = program.graph().type(id).shape[1];
  require(positions_ > 0, ErrorKind::unsupported,
          "the network does not predict next tokens; try one of the models gpt2");
  parameters_ = Parameters(program.parameter_entries());
}

Decoder::Decoder(const Model& model, const NamedTensors& weights, int threads)
    : Decoder(model, threads) {
  load_weights(parameters_, weights, [](const std::string& name) { return !is_cache(name); });
}

Decoder::Decoder(const Model& model, uint64_t seed, int threads) : Decoder(model, threads) {
  const ModelGraph graph = decoding_graph(model, 1);
  for (const ParameterEntry& entry : parameters_.entries())
    parameters_.set(entry.name, nn::initial_value(seed, entry.name, entry.shape,
                                                  graph.initialisers.at(entry.name)));
}

Decoder::~Decoder() = default;

size_t Decoder::weight_bytes() const {
  size_t bytes = 0;
  for (const ParameterEntry& entry : parameters_.entries())
    if (entry.trained) bytes += static_cast<size_t>(entry.shape.elements()) * sizeof(float);
  return bytes;
}

Decoder::Compiled& Decoder::compiled(int64_t tokens) {
  std::unique_ptr<Compiled>& found = compiled_[tokens];
  if (!found)
    found.reset(new Compiled{
        Program(decoding_graph(model_, tokens).graph, {.threads = threads_}, choices_), {}});
  return *found;
}

Tensor Decoder::read(std::span<const int32_t> tokens) {
  const auto count = static_cast<int64_t>(tokens.size());
  require(count > 0 && size_ + count <= positions_, ErrorKind::invalid_argument,
          "[decoder] tokens: got {} after {}, expected 1 to {}", count, size_, positions_ - size_);
  Compiled& now = compiled(count);
  if (!now.lane) now.lane = std::make_unique<Lane>(now.program, parameters_);
  Tensor x({1, count}, DType::i32), places({count}, DType::i32);
  std::copy(tokens.begin(), tokens.end(), x.values<int32_t>().begin());
  std::iota(places.values<int32_t>().begin(), places.values<int32_t>().end(),
            static_cast<int32_t>(size_));
  now.lane->set_input("x", x);
  now.lane->set_input("places", places);
  now.program.run(*now.lane, pool_, {});
  size_ += count;
  const Tensor scores = now.lane->output("prediction");
  return scores.reshaped({scores.elements()});
}

}  // namespace artel
