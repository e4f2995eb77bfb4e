#include "artel/cli/generation_bench.h"

#include <CLI/CLI.hpp>

#include "artel/base/json_values.h"
#include "artel/base/log.h"
#include "artel/base/time.h"
#include "artel/cli/shared_arguments.h"
#include "artel/cluster/cluster.h"
#include "artel/exec/libraries.h"
#include "artel/exec/memory_speed.h"
#include "artel/nn/zoo/registry.h"
#include "artel/observe/table.h"
#include "artel/predict/generate.h"
#include "artel/shrink/weights_of_few_bits.h"

namespace artel::cli {
namespace {

struct Arguments {
  std::string model = "gpt2", weights = "fp32";
  int threads = 0;
  int64_t tokens = 64;
  bool json = false;
};

// With random weights of that many bits.
std::unique_ptr<Decoder> make_decoder(const Arguments& arguments, int threads) {
  constexpr uint64_t kSeed = 1;
  const Model model = nn::model_by_name(arguments.model);
  if (arguments.weights == "fp32") return std::make_unique<Decoder>(model, kSeed, threads);
  const ModelGraph built = decoding_graph(model, 1);
  NamedTensors weights;
  for (const ValueId id : built.graph.of_kind(ValueKind::parameter)) {
    const ValueData& value = built.graph.value(id);
    weights.push_back({value.name, nn::initial_value(kSeed, value.name, value.type.shape,
                                                     built.initialisers.at(value.name))});
  }
  const int bits = arguments.weights == "int8" ? 8 : 4;
  weights = shrink::quantise(built.graph, weights, {.form = {.bits = bits}}).weights;
  return std::make_unique<Decoder>(model, weights, threads);
}

// A token costs one pass over all weights, so memory bandwidth limits tokens per second. Both are
// measured twice, in turns.
void bench_generation(const Arguments& arguments) {
  Cluster cluster;
  const int threads = arguments.threads > 0 ? arguments.threads : cluster.cores();
  const std::unique_ptr<Decoder> made = make_decoder(arguments, threads);
  Decoder& decoder = *made;
  ThreadPool pool(threads, limit_library_threads);
  double rate = 0, speed = 0;
  for (int turn = 0; turn < 2; ++turn) {
    speed = std::max(speed, measure_memory_speed(pool, threads));
    decoder.forget();
    std::vector<int32_t> token = {1};
    decoder.read(token);  // the first call creates kernels and buffers
    Random random{1};
    const Clock::time_point begin = Clock::now();
    for (int64_t i = 0; i < arguments.tokens; ++i)
      token[0] = sample_token(decoder.read(token).values<float>(), {.top_k = 40}, random);
    rate = std::max(rate,
                    static_cast<double>(arguments.tokens) / seconds_between(begin, Clock::now()));
  }
  const double bound = speed / static_cast<double>(decoder.weight_bytes());
  if (arguments.json) {
    const nlohmann::ordered_json json = {{"model", arguments.model},
                                         {"weights", arguments.weights},
                                         {"threads", threads},
                                         {"tokens_per_second", rate},
                                         {"memory_bytes_per_second", speed},
                                         {"weight_bytes", decoder.weight_bytes()},
                                         {"bound_tokens_per_second", bound},
                                         {"share_of_bound", rate / bound}};
    return println("{}", json.dump());
  }
  observe::Table table({"model", "weights", "threads", "tokens/s", "memory", "bound", "share"});
  table.add({arguments.model, arguments.weights, std::to_string(threads),
             fmt::format("{:.1f}", rate), fmt::format("{:.1f} GB/s", speed * 1e-9),
             fmt::format("{:.1f} tokens/s", bound), fmt::format("{:.0f} %", 100 * rate / bound)});
  fmt::print("{}", table.text());
}

}  // namespace

void add_generation_bench(CLI::App& bench) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = bench.add_subcommand(
      "generate", "Measure tokens per second of a language model, compared with the memory bound");
  command->add_option("MODEL", arguments->model, "A model of the zoo that predicts next tokens")
      ->capture_default_str();
  command->add_option("--weights", arguments->weights, "Bits per weight: fp32, int8 or int4")
      ->type_name("BITS")
      ->check(CLI::IsMember({"fp32", "int8", "int4"}))
      ->capture_default_str();
  command->add_option("--threads", arguments->threads, "Cores to use (default: all)")
      ->type_name("N")
      ->check(at_least(1));
  command->add_option("--tokens", arguments->tokens, "Tokens per turn")
      ->type_name("N")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_flag("--json", arguments->json, "Print one JSON object");
  command->footer(
      "Examples:\n"
      "  artel bench generate gpt2 --threads 2\n"
      "  artel bench generate llama --weights int4");
  command->callback([arguments] { bench_generation(*arguments); });
}

}  // namespace artel::cli
