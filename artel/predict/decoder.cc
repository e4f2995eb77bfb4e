#include "artel/predict/decoder.h"

#include <numeric>

#include "artel/base/error.h"
#include "artel/exec/devices.h"
#include "artel/exec/libraries.h"
#include "artel/predict/initialise.h"
#include "artel/predict/load_weights.h"
#include "artel/predict/quantised_weights.h"
#include "artel/predict/rereading.h"

namespace artel {

struct Decoder::Compiled {
  Program program;
  std::unique_ptr<Frame> frame;
};

Decoder::Decoder(const Model& model, int threads, const std::string& device)
    : model_(model), threads_(threads), pool_(threads, limit_library_threads) {
  choices_.device = &device_by_name(device);
}

Decoder::Decoder(const Model& model, const NamedTensors& weights, int threads, int64_t window,
                 const std::string& device)
    : Decoder(model, threads, device) {
  matrices_ = quantised_types(weights);
  if (!reads_on(window)) {
    rereading_ = std::make_unique<Rereading>(model, weights, threads, window, device);
    return;
  }
  parameters_ = Parameters(compiled(1).program.parameter_entries());
  load_weights(parameters_, weights, [](const std::string& name) { return !is_cache(name); });
}

Decoder::Decoder(const Model& model, Parameters& weights, int threads, int64_t window)
    : Decoder(model, threads, "cpu") {
  if (!reads_on(window)) {
    rereading_ = std::make_unique<Rereading>(model, tensors_of(weights.sources()), threads, window);
    return;
  }
  lender_ = &weights;
  std::vector<ParameterEntry> own = compiled(1).program.parameter_entries();
  std::erase_if(own, [&](const ParameterEntry& entry) {
    return weights.contains(entry.name) &&
           same_memory(entry.shape, entry.layout, weights.entry(entry.name).layout);
  });
  parameters_ = Parameters(std::move(own));
  for (const ParameterEntry& entry : parameters_.entries())
    if (!is_cache(entry.name)) parameters_.set(entry.name, weights.get(entry.name));
}

Decoder::Decoder(const Model& model, uint64_t seed, int threads) : Decoder(model, threads, "cpu") {
  find_cache();
  parameters_ = Parameters(compiled(1).program.parameter_entries());
  const ModelGraph graph = decoding_graph(model, 1);
  initialise(pool_, seed, graph.initialisers, parameters_);
}

Decoder::~Decoder() = default;

size_t Decoder::weight_bytes() const {
  if (rereading_) return rereading_->weight_bytes();
  size_t bytes = 0;
  for (const ParameterEntry& entry : compiled_.at(1)->program.parameter_entries())
    if (!entry.is_state) bytes += entry.bytes();
  return bytes;
}

size_t Decoder::cache_bytes() const {
  if (rereading_) return 0;
  size_t bytes = 0;
  for (const ParameterEntry& entry : compiled_.at(1)->program.parameter_entries())
    if (is_cache(entry.name)) bytes += entry.bytes();
  return bytes;
}

bool Decoder::reads_on(int64_t window) {
  try {
    find_cache();
    return true;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::unsupported || window == 0) throw;
    positions_ = window;
    return false;
  }
}

void Decoder::find_cache() {
  const Program& program = compiled(1).program;
  for (const ValueId id : program.graph().of_kind(ValueKind::state))
    if (is_cache(program.graph().value(id).name)) positions_ = program.graph().type(id).shape[1];
  require(positions_ > 0, ErrorKind::unsupported,
          "the network does not predict next tokens; try the models gpt2 and llama");
}

Decoder::Compiled& Decoder::compiled(int64_t tokens) {
  std::unique_ptr<Compiled>& found = compiled_[tokens];
  if (!found) {
    Graph graph = decoding_graph(model_, tokens).graph;
    if (!matrices_.empty()) graph = quantise_weights(graph, matrices_);
    found.reset(new Compiled{Program(std::move(graph), {.threads = threads_}, choices_), {}});
  }
  return *found;
}

Tensor Decoder::read(std::span<const int32_t> tokens) {
  const auto count = static_cast<int64_t>(tokens.size());
  require(count > 0 && size() + count <= positions_, ErrorKind::invalid_argument,
          "[decoder] tokens: got {} after {}, expected 1 to {}", count, size(),
          positions_ - size());
  std::vector<int32_t> text = text_;
  text.insert(text.end(), tokens.begin(), tokens.end());
  Tensor scores = rereading_ ? rereading_->scores_after(text) : read_on(tokens);
  text_ = std::move(text);
  return scores;
}

Tensor Decoder::read_on(std::span<const int32_t> tokens) {
  const auto count = static_cast<int64_t>(tokens.size());
  Compiled& now = compiled(count);
  if (!now.frame) now.frame = std::make_unique<Frame>(now.program, parameters_, Memory(), lender_);
  Tensor x({1, count}, DType::i32), places({count}, DType::i32);
  std::copy(tokens.begin(), tokens.end(), x.values<int32_t>().begin());
  std::iota(places.values<int32_t>().begin(), places.values<int32_t>().end(),
            static_cast<int32_t>(size()));
  now.frame->set_input("x", x);
  now.frame->set_input("places", places);
  now.program.run(*now.frame, pool_, {});
  const Tensor scores = now.frame->output("prediction");  // of all tokens, or of the last one
  const int64_t vocabulary = scores.shape().back(), rows = scores.elements() / vocabulary;
  return scores.reshaped({rows, vocabulary}).rows(rows - 1, rows).reshaped({vocabulary});
}

}  // namespace artel
