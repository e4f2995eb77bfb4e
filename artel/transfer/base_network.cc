#include "artel/transfer/base_network.h"

#include <algorithm>
#include <filesystem>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/text.h"
#include "artel/data/images/image_folder.h"
#include "artel/data/sets.h"
#include "artel/nn/zoo/registry.h"
#include "artel/run/config/fetch.h"
#include "artel/run/config/published_config.h"
#include "artel/run/folder/run_folder.h"
#include "artel/run/samples/text_model.h"
#include "artel/transfer/bases.h"

namespace artel::transfer {
namespace {

namespace fs = std::filesystem;

// The normalisation of published zoo networks: ImageNet's statistics.
constexpr const char* kImageNet = "normalise 0.485 0.456 0.406 0.229 0.224 0.225";

std::string word_of(const std::string& transform) { return split(transform, ' ').front(); }

BaseNetwork base_of_run(const RunFolder& folder, const BaseSource& source) {
  const RunConfig config = read_config(folder.config(), source.overrides);
  require(config.model.adapters.empty(), ErrorKind::unsupported,
          "[{}] has adapters; merge them first: artel adapters {} -o FILE.safetensors", source.name,
          source.name);
  const data::SampleLayout layout = folder.load_layout();
  const auto augment = data::Augmentation::parse(config.data.augment).for_testing();
  BaseNetwork base = {.name = source.name,
                      .model = config.model,
                      .classes = layout.classes,
                      .class_names = layout.class_names,
                      .sample = sample_type(layout, augment)};
  for (const data::Transform& transform : augment.transforms)
    if (word_of(transform.text) == "normalise") base.prepare.push_back(transform.text);
  if (layout.tokenizer) {
    base.tokenizer = folder.tokenizer().string();
    base.class_names.clear();
    if (base.model.vocabulary == 0) base.model.vocabulary = layout.tokenizer->size();
  }
  base.model.weights = fs::absolute(source.name).string();
  base.model.new_layers.clear();
  base.weights = weights_for(base.model, base.model.weights);
  return base;
}

BaseNetwork base_of_text_model(const BaseSource& source, const fs::path& folder) {
  TextModel text = open_text_model({.path = folder.string()});
  BaseNetwork base = {.name = source.name, .model = text.config, .classes = text.classes};
  const int64_t positions =
      nn::complete_options(text.config.name, model_options(text.config, 0)).positions;
  base.sample = {DType::i32, {std::min<int64_t>(positions, 128)}};
  base.model.weights = fs::absolute(folder).string();
  base.tokenizer = base.model.weights;
  base.weights = std::move(text.weights);
  return base;
}

const nn::ModelDescription* zoo_model(const std::vector<nn::ModelDescription>& zoo,
                                      const std::string& name) {
  const auto found = std::ranges::find(zoo, name, &nn::ModelDescription::name);
  return found == zoo.end() ? nullptr : &*found;
}

// The number of classes according to the weights of the last layer.
int64_t classes_in(const NamedTensors& weights, const ModelConfig& model,
                   const TensorType& sample) {
  const Model as_published = make_model(model, 0);
  std::string head;
  {
    Graph graph;
    nn::Build build(graph, false);
    std::vector<int64_t> extents = {1};
    extents.insert(extents.end(), sample.shape.extents().begin(), sample.shape.extents().end());
    const Value x = graph.input("x", {sample.dtype, Shape(extents)});
    build.set_input("x", x);
    as_published.network()(build, x);
    for (const ValueId id : graph.of_kind(ValueKind::parameter))
      if (graph.value(id).type.shape.rank() == 2) head = graph.value(id).name;
  }
  const Tensor* const weight = find_tensor(weights, head);
  return weight && weight->shape().rank() == 2 ? weight->shape()[0] : 0;
}

BaseNetwork base_of_zoo(const nn::ModelDescription& network, const BaseSource& source) {
  std::vector<std::string> overrides = source.overrides;
  overrides.push_back("model.name=" + source.name);
  BaseNetwork base = {.name = source.name, .model = default_config(overrides).model};
  require(fs::exists(source.weights), ErrorKind::not_found, "[{}] no such file or folder",
          source.weights);
  base.model.weights = fs::absolute(source.weights).string();
  base.weights = weights_for(base.model, base.model.weights);
  base.sample = {network.input_type, network.input};
  if (base.model.small_images) base.sample.shape = {3, 32, 32};
  if (base.sample.shape.rank() == 3 && base.sample.shape[0] == 3) base.prepare = {kImageNet};
  base.classes = classes_in(base.weights, base.model, base.sample);
  return base;
}

// Opens a base by name or folder.
BaseNetwork published_base(const BaseSource& source) {
  const Base base = load_base(source.name);
  if (base.reads_text()) return base_of_text_model(source, base.config.weights);
  return {.name = source.name,
          .model = base.config,
          .classes = base.config.classes,
          .class_names = base.classes,
          .sample = base.sample,
          .prepare = {base.pictures.normalise().text},
          .weights = base.weights()};
}

bool is_set(const std::string& name) {
  const std::vector<std::string> names = data::set_names();
  return std::ranges::find(names, name) != names.end();
}

// Transforms that convert pictures to the base's channels, size, and normalisation.
void fit_images(const BaseNetwork& base, const Shape& shape, int64_t side, DataConfig& data) {
  const int64_t channels = base.sample.shape[0];
  const int64_t height = side > 0 ? side : base.sample.shape[1];
  const int64_t width = side > 0 ? side : base.sample.shape[2];
  data.augment.clear();
  if (shape[0] != channels) data.augment.push_back(fmt::format("channels {}", channels));
  if (shape[1] != height || shape[2] != width)
    data.augment.push_back(fmt::format("resize {} {}", height, width));
  data.augment.insert(data.augment.end(), base.prepare.begin(), base.prepare.end());
}

}  // namespace

BaseNetwork open_base(const BaseSource& source) {
  if (!source.weights.empty()) {
    const std::vector<nn::ModelDescription> zoo = nn::model_list();
    const nn::ModelDescription* const network = zoo_model(zoo, source.name);
    if (network) return base_of_zoo(*network, source);
    nn::model_by_name(source.name);  // throws with a list of known names
  }
  const fs::path path = source.name;
  const bool published =
      std::ranges::find(base_list(), source.name, &BaseDescription::name) != base_list().end();
  if (published && !fs::exists(path)) return published_base(source);
  if (fs::exists(path / kPublishedConfig)) return published_base(source);
  if (fs::exists(path))
    if (const std::optional<RunFolder> run = find_run(path)) return base_of_run(*run, source);
  require(!fs::exists(path), ErrorKind::invalid_argument,
          "[{}] is neither a run nor the folder of a published model; for a file of weights give "
          "the network's name and --weights {}",
          source.name, source.name);
  const std::vector<nn::ModelDescription> zoo = nn::model_list();
  require(!zoo_model(zoo, source.name), ErrorKind::not_found,
          "[{}] is a network without weights; give a file of them with --weights FILE",
          source.name);
  std::vector<std::string> known;
  for (const nn::ModelDescription& each : zoo) known.push_back(each.name);
  for (const BaseDescription& each : base_list()) known.push_back(each.name);
  fail(ErrorKind::not_found,
       "[{}] no such base{}: expected a name of `artel models list`, the folder of a run or of a "
       "published model, or a network of the zoo with --weights FILE",
       source.name, did_you_mean(source.name, known));
}

namespace {

// Interprets the `data` argument, without the base's transforms.
DataConfig named_data(const BaseNetwork& base, const std::string& name) {
  DataConfig data;
  const fs::path path = name;
  if (path.extension() == ".toml") return read_config(path).data;
  if (fs::is_directory(path)) {
    require(base.reads_images(), ErrorKind::invalid_argument,
            "[{}] is a folder of pictures, but the base {} reads {}", name, base.name,
            base.reads_text() ? "texts; give a table of texts (CSV)" : to_string(base.sample));
    data.set = "folder";
    data.path = fs::absolute(path).string();
    data.skip_broken = true;
    return data;
  }
  if (fs::is_regular_file(path)) {
    data.path = fs::absolute(path).string();
    const std::string extension = path.extension().string();
    if (base.reads_text()) {
      const bool of_classes = extension == ".csv" || extension == ".tsv";
      data.set = of_classes ? "labelled_text" : "text";
    } else {
      require(extension == ".npz" || extension == ".csv", ErrorKind::invalid_argument,
              "[{}] got a file, expected a folder of pictures, NPZ, CSV, TOML or the name of a "
              "data set",
              name);
      data.set = extension.substr(1);
    }
  } else {
    require(is_set(name), ErrorKind::not_found,
            "[{}] no such folder, file or data set{}; `artel data list` shows the sets", name,
            did_you_mean(name, data::set_names()));
    data.set = name;
  }
  if (base.reads_text()) {
    data.tokenizer = base.tokenizer;
    data.context = base.sample.shape.back();
  }
  return data;
}

}  // namespace

DataConfig data_for(const BaseNetwork& base, const std::string& name, int64_t side) {
  DataConfig data = named_data(base, name);
  if (!base.reads_images() || data.set == "csv") return data;
  if (!data.augment.empty() || data.task == "reconstruct") {
    require(side == 0, ErrorKind::invalid_argument,
            "--size: got {}, but [{}] says itself how pictures are prepared; change it there", side,
            name);
    return data;
  }
  if (data.set == "folder") {
    if (side > 0 || data.image_size == 0) data.image_size = side > 0 ? side : base.sample.shape[1];
    fit_images(base, {3, data.image_size, data.image_size}, data.image_size, data);
    return data;
  }
  RunConfig probe;
  probe.data = data;
  const data::SampleLayout layout = open_data(probe).layout();
  require(layout.input.rank() == 3 && !layout.tokenizer, ErrorKind::shape,
          "[{}] samples are {}, but the base {} reads images {}", name, to_string(layout.input),
          base.name, to_string(base.sample.shape));
  fit_images(base, layout.input, side, data);
  return data;
}

}  // namespace artel::transfer
