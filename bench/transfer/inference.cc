// artel_bench_inference NETWORK FOLDER THREADS SECONDS: features of the pictures in a folder by a
// network of the zoo with random weights, again and again; prints pictures per second.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>

#include "artel/base/random.h"
#include "artel/base/time.h"
#include "artel/data/images/image_folder.h"
#include "artel/nn/zoo/registry.h"
#include "artel/predict/fold_norms.h"
#include "artel/transfer/picture_search.h"

namespace {

using namespace artel;

// Small numbers, variances of one: what the weights are does not change the time.
NamedTensors random_weights(const Model& model, const TensorType& sample) {
  const Graph graph = inference_graph(model, {sample.dtype, {1, 3, 224, 224}}).graph;
  NamedTensors weights;
  Random random(1);
  for (const ValueKind kind : {ValueKind::parameter, ValueKind::state})
    for (const ValueId id : graph.of_kind(kind)) {
      const std::string name = graph.value(id).whole_name();
      Tensor tensor(graph.type(id).shape);
      for (float& value : tensor.values<float>())
        value = name.ends_with("running_var") ? 1.0f : 0.02f * random.normal();
      weights.push_back({name, tensor});
    }
  return weights;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: artel_bench_inference NETWORK FOLDER THREADS SECONDS\n");
    return 2;
  }
  constexpr int64_t kBatch = 16;
  const int threads = std::stoi(argv[3]);
  const double seconds = std::stod(argv[4]);
  const TensorType sample = {DType::f32, {3, 224, 224}};
  const Model model = nn::model_by_name(argv[1]);
  Predictor predictor = folded_predictor(model, sample, random_weights(model, sample), threads);
  const auto files = data::pictures_in(argv[2]);
  const transfer::PictureRules rules;
  ThreadPool pool(threads);
  Tensor batch({kBatch, 3, 224, 224});
  int64_t next = 0;
  const auto step = [&] {
    pool.run(kBatch, [&](int64_t i) {
      const data::Image image = transfer::prepared_picture(
          rules, map_file(files[(next + i) % static_cast<int64_t>(files.size())]));
      std::copy(image.pixels.begin(), image.pixels.end(),
                batch.values<float>().begin() + i * 3 * 224 * 224);
    });
    next += kBatch;
    predictor(batch);
  };
  step();  // compiles
  const Clock::time_point begin = Clock::now();
  int64_t pictures = 0;
  double elapsed = 0;
  do {
    step();
    pictures += kBatch;
    elapsed = std::chrono::duration<double>(Clock::now() - begin).count();
  } while (elapsed < seconds);
  std::printf("%.3f\n", static_cast<double>(pictures) / elapsed);
}
