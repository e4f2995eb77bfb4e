#include "artel/transfer/features.h"

#include <algorithm>
#include <cstring>
#include <future>

#include "artel/base/error.h"
#include "artel/base/json.h"
#include "artel/base/json_values.h"
#include "artel/base/text.h"
#include "artel/base/thread_pool.h"
#include "artel/predict/predictor.h"
#include "artel/run/config/setup.h"
#include "artel/tensor/npy.h"
#include "artel/transfer/blocks.h"

namespace artel::transfer {
namespace {

// Rows per batch, fixed so that bits do not depend on the worker.
constexpr int64_t kRows = 64;

Shape with_rows(int64_t rows, const Shape& sample) {
  std::vector<int64_t> extents = {rows};
  extents.insert(extents.end(), sample.extents().begin(), sample.extents().end());
  return Shape(std::move(extents));
}

std::vector<std::string> wanted_layers(const BaseNetwork& base, const TensorType& sample,
                                       const FeatureRequest& request) {
  if (!request.layers.empty()) return request.layers;
  return {"before " + blocks_of(base.network(), sample).back().name};
}

// The parts of [0, size) by rank, in whole chunks of rows.
std::vector<int64_t> shares(int64_t size, int ranks) {
  const int64_t chunks = (size + kRows - 1) / kRows;
  std::vector<int64_t> begins;
  for (int64_t rank = 0; rank <= ranks; ++rank)
    begins.push_back(std::min(size, chunks * rank / ranks * kRows));
  return begins;
}

// Gathers all rows on rank 0. Other ranks return nothing.
Tensor gathered(comm::Group& group, const Tensor& own, const std::vector<int64_t>& begins) {
  const std::vector<int64_t>& extents = own.shape().extents();
  const Shape row({extents.begin() + 1, extents.end()});
  const size_t bytes = static_cast<size_t>(row.elements()) * size_of(own.dtype());
  std::vector<size_t> sizes;
  for (int rank = 0; rank < group.size(); ++rank)
    sizes.push_back(static_cast<size_t>(begins[rank + 1] - begins[rank]) * bytes);
  Tensor all(with_rows(group.rank() == 0 ? begins.back() : 0, row), own.dtype());
  group.gather({own.raw(), own.bytes()}, {all.raw(), all.bytes()}, 0, sizes, {.label = "features"});
  return all;
}

Tensor text_tensor(const std::string& text) {
  Tensor tensor({static_cast<int64_t>(text.size())}, DType::u8);
  std::memcpy(tensor.raw(), text.data(), text.size());
  return tensor;
}

std::string text_of(const Tensor& tensor) {
  return {reinterpret_cast<const char*>(tensor.raw()), tensor.bytes()};
}

std::string array_name(size_t layer, const char* part) {
  return layer == 0 ? fmt::format("x_{}", part) : fmt::format("x{}_{}", layer + 1, part);
}

void add_arrays(NamedTensors& arrays, const FeaturePart& part, const char* name) {
  for (size_t i = 0; i < part.layers.size(); ++i)
    arrays.push_back({array_name(i, name), part.layers[i]});
  if (part.targets.elements() > 0) arrays.push_back({fmt::format("y_{}", name), part.targets});
  if (!part.names.empty())
    arrays.push_back({fmt::format("names_{}", name), text_tensor(join(part.names, "\n"))});
}

Tensor as_targets(const Tensor& tensor) {
  if (is_floating(tensor.dtype())) return tensor.to(DType::f32);
  return tensor.to(DType::i32);
}

FeaturePart part_of(const NamedTensors& arrays, const char* name, const std::string& where) {
  FeaturePart part;
  for (size_t i = 0;; ++i) {
    const Tensor* const layer = find_tensor(arrays, array_name(i, name));
    if (!layer) break;
    require(layer->shape().rank() >= 2, ErrorKind::corrupt,
            "[{}] {}: got {}, expected rows of numbers", where, array_name(i, name),
            to_string(layer->shape()));
    part.layers.push_back(layer->to(DType::f32));
    require(part.layers.back().shape()[0] == part.size(), ErrorKind::corrupt,
            "[{}] {}: got {} rows, expected {}", where, array_name(i, name),
            part.layers.back().shape()[0], part.size());
  }
  if (const Tensor* const targets = find_tensor(arrays, fmt::format("y_{}", name))) {
    part.targets = as_targets(*targets);
    require(part.targets.shape()[0] == part.size(), ErrorKind::corrupt,
            "[{}] y_{}: got {} targets for {} samples", where, name, part.targets.shape()[0],
            part.size());
  }
  if (const Tensor* const names = find_tensor(arrays, fmt::format("names_{}", name)))
    part.names = split(text_of(*names), '\n');
  return part;
}

}  // namespace

Tensor read_rows(const data::Dataset& set, const data::Augmentation& prepare, int64_t begin,
                 int64_t end, ThreadPool& pool) {
  const data::SampleLayout& layout = set.layout();
  const TensorType type = sample_type(layout, prepare);
  Tensor rows(with_rows(end - begin, type.shape), type.dtype);
  const size_t bytes = rows.bytes() / static_cast<size_t>(std::max<int64_t>(1, end - begin));
  parallel_for(pool, end - begin, 1, [&](int64_t first, int64_t last) {
    std::vector<std::byte> target(layout.target_bytes());
    for (int64_t i = first; i < last; ++i) {
      std::byte* const to = rows.raw() + static_cast<size_t>(i) * bytes;
      if (prepare.transforms.empty()) {
        set.read(begin + i, {to, bytes}, target);
        continue;
      }
      data::Image image(layout.input[0], layout.input[1], layout.input[2]);
      set.read(begin + i, std::as_writable_bytes(std::span(image.pixels)), target);
      Random unused{0};
      prepare.apply(image, unused);
      std::memcpy(to, image.pixels.data(), bytes);
    }
  });
  return rows;
}

Tensor read_targets(const data::Dataset& set) {
  const data::SampleLayout& layout = set.layout();
  if (layout.target_kind == data::TargetKind::none) return {};
  Tensor targets(with_rows(set.size(), layout.target), layout.target_type());
  const size_t bytes = layout.target_bytes();
  for (int64_t i = 0; i < set.size(); ++i)
    set.read_target(i, {targets.raw() + static_cast<size_t>(i) * bytes, bytes});
  return targets;
}

Extractor::Extractor(const BaseNetwork& base, const TensorType& sample, FeatureRequest request,
                     int threads)
    : layers_(wanted_layers(base, sample, request)),
      sample_(sample),
      threads_(threads),
      predictor_(ending_at(base.network(), layers_, request.pooling), sample, base.weights,
                 threads) {
  for (const std::string& layer : layers_) outputs_.push_back(output_name(layer));
}

std::vector<Tensor> Extractor::operator()(const Tensor& rows) { return predictor_(rows, outputs_); }

FeaturePart Extractor::operator()(const data::Dataset& set, const data::Augmentation& prepare,
                                  comm::Group* group, const FeatureProgress& progress) {
  const std::vector<int64_t> begins = shares(set.size(), group ? group->size() : 1);
  const int64_t begin = begins[group ? group->rank() : 0];
  const int64_t end = begins[(group ? group->rank() : 0) + 1];
  // Whole chunks for all threads, then the remainder.
  std::vector<int64_t> cuts = {begin};
  while (cuts.back() < end) {
    const int64_t left = (end - cuts.back()) / kRows;
    cuts.push_back(left == 0 ? end : cuts.back() + std::min<int64_t>(left, threads_) * kRows);
  }
  ThreadPool pool(threads_);
  const auto read = [&](size_t i) {
    return std::async(std::launch::async,
                      [&, i] { return read_rows(set, prepare, cuts[i], cuts[i + 1], pool); });
  };
  FeaturePart part;
  std::future<Tensor> coming;
  if (cuts.size() > 1) coming = read(0);
  for (size_t i = 0; i + 1 < cuts.size(); ++i) {
    const Tensor rows = coming.get();
    if (i + 2 < cuts.size()) coming = read(i + 1);
    const std::vector<Tensor> values = (*this)(rows);
    for (size_t k = 0; k < values.size(); ++k) {
      if (part.layers.size() == k) {
        const std::vector<int64_t>& extents = values[k].shape().extents();
        part.layers.emplace_back(
            with_rows(end - begin, Shape({extents.begin() + 1, extents.end()})));
      }
      std::memcpy(part.layers[k].rows(cuts[i] - begin, cuts[i + 1] - begin).raw(), values[k].raw(),
                  values[k].bytes());
    }
    if (progress) progress(cuts[i + 1] - begin, end - begin);
  }
  if (part.layers.empty()) {  // a rank without samples does not know their shape
    const std::vector<Tensor> values = (*this)(Tensor(with_rows(1, sample_.shape), sample_.dtype));
    for (const Tensor& value : values) part.layers.push_back(value.rows(0, 0).clone());
  }
  if (group)
    for (Tensor& layer : part.layers) layer = gathered(*group, layer, begins);
  if (group && group->rank() > 0) return part;
  part.targets = read_targets(set);
  for (int64_t i = 0; i < set.size() && !set.name(i).empty(); ++i)
    part.names.push_back(set.name(i));
  return part;
}

Features extract(const BaseNetwork& base, const DataConfig& data, const FeatureRequest& request,
                 int threads, comm::Group* group, const FeatureProgress& progress) {
  RunConfig config;
  config.data = data;
  config.data.validation = 0;
  config.data.balanced = false;
  config.model = base.model;
  const RunData opened = open_data(config);
  const data::Augmentation prepare = opened.augment.for_testing();
  const TensorType sample = sample_type(opened.layout(), prepare);
  Extractor extractor(base, sample, request, threads);
  Features features = {.base = base.name, .request = request};
  features.request.layers = extractor.layers();
  features.class_names = opened.layout().class_names;
  features.classes = opened.layout().classes;
  const int64_t all = opened.train->size() + opened.test->size();
  const int ranks = group ? group->size() : 1;
  int64_t before = 0;
  for (const auto& [set, part] :
       {std::pair(opened.train, &features.train), std::pair(opened.test, &features.test)}) {
    if (set->size() == 0) continue;
    *part = extractor(*set, prepare, group, [&](int64_t done, int64_t) {
      if (progress) progress(before + done * ranks, all);
    });
    before += set->size();
  }
  return features;
}

Tensor Features::rows(const FeaturePart& part) {
  const int64_t samples = part.size();
  int64_t width = 0;
  for (const Tensor& layer : part.layers) width += layer.elements() / std::max<int64_t>(1, samples);
  if (part.layers.size() == 1) return part.layers[0].reshaped({samples, width});
  Tensor all({samples, width});
  float* to = all.values<float>().data();
  for (int64_t i = 0; i < samples; ++i)
    for (const Tensor& layer : part.layers) {
      const int64_t each = layer.elements() / samples;
      std::copy_n(layer.values<float>().data() + i * each, each, to);
      to += each;
    }
  return all;
}

void Features::save(const std::filesystem::path& path) const {
  const nlohmann::ordered_json recipe = {{"base", base},
                                         {"weights", weights},
                                         {"overrides", overrides},
                                         {"side", side},
                                         {"layers", request.layers},
                                         {"pooling", std::string(to_string(request.pooling))},
                                         {"columns", columns},
                                         {"classes", classes},
                                         {"class_names", class_names}};
  NamedTensors arrays;
  add_arrays(arrays, train, "train");
  if (test.size() > 0) add_arrays(arrays, test, "test");
  arrays.push_back({"recipe", text_tensor(recipe.dump())});
  write_npz(path, arrays);
}

Features Features::load(const std::filesystem::path& path) {
  const std::string where = path.string();
  NamedTensors arrays = read_npz(path);
  const auto rename = [&](const char* from, const char* to) {
    for (NamedTensor& each : arrays)
      if (each.name == from && !find_tensor(arrays, to)) each.name = to;
  };
  rename("x", "x_train");
  rename("y", "y_train");
  Features features;
  features.train = part_of(arrays, "train", where);
  features.test = part_of(arrays, "test", where);
  require(features.train.size() > 0, ErrorKind::corrupt,
          "[{}] holds no features: expected the arrays x_train and y_train, or x and y", where);
  if (const Tensor* const recipe = find_tensor(arrays, "recipe")) {
    const nlohmann::json json = parse_json(text_of(*recipe), where + " recipe");
    try {
      features.base = json.at("base");
      features.weights = json.at("weights");
      features.overrides = json.at("overrides");
      features.side = json.at("side");
      features.request.layers = json.at("layers");
      features.request.pooling = pooling_by_name(json.at("pooling"));
      features.columns = json.at("columns");
      features.classes = json.at("classes");
      features.class_names = json.at("class_names");
    } catch (const nlohmann::json::exception& error) {
      fail(ErrorKind::corrupt, "[{}] recipe: {}", where, error.what());
    }
  } else if (features.train.targets.elements() > 0 &&
             features.train.targets.dtype() == DType::i32) {
    for (const FeaturePart* part : {&features.train, &features.test})
      if (part->targets.elements() > 0)
        for (const int32_t label : part->targets.values<int32_t>())
          features.classes = std::max<int64_t>(features.classes, label + 1);
  }
  return features;
}

}  // namespace artel::transfer
