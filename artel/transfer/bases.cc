#include "artel/transfer/bases.h"

#include <algorithm>
#include <cmath>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/json.h"
#include "artel/base/json_values.h"
#include "artel/base/text.h"
#include "artel/checkpoint/safetensors.h"
#include "artel/predict/batches.h"
#include "artel/predict/fold_norms.h"
#include "artel/run/config/fetch.h"
#include "artel/run/config/published_config.h"
#include "artel/run/config/setup.h"
#include "artel/run/folder/run_folder.h"
#include "artel/transfer/layer_outputs.h"

namespace artel::transfer {
namespace {

namespace fs = std::filesystem;

constexpr const char* kConverted = "converted.safetensors";
constexpr const char* kClassNames = "labels.json";
constexpr uint64_t kMostClassBytes = uint64_t{1} << 24;
// Tolerance of features relative to their norm, for other kernels and folded layers.
constexpr double kTolerance = 1e-3;

fs::path weights_in_folder(const BaseDescription& base, const fs::path& folder) {
  if (base.convert) return folder / kConverted;
  return base.weights.empty() ? folder : folder / base.weights;
}

// {"0": "tench", "1": "goldfish", ...}
std::vector<std::string> read_class_names(const fs::path& file) {
  const std::string where = file.string();
  const nlohmann::json names = parse_json(read_file(file, kMostClassBytes), where);
  std::vector<std::string> result;
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string key = std::to_string(i);
    require(names.is_object() && names.contains(key) && names.at(key).is_string(),
            ErrorKind::corrupt, "[{}] the name of class {} is missing", where, i);
    result.push_back(names.at(key));
    std::replace(result.back().begin(), result.back().end(), '_', ' ');
  }
  return result;
}

Base from_description(const BaseDescription& description) {
  const fs::path folder = get_base(description);
  Base base{.name = description.name,
            .config = description.model,
            .head = description.head,
            .features = description.features,
            .headless = description.headless,
            .embeds = description.embeds,
            .sample = description.sample,
            .pictures = description.pictures};
  base.config.weights = weights_in_folder(description, folder).string();
  if (fs::exists(folder / kClassNames)) base.classes = read_class_names(folder / kClassNames);
  return base;
}

Base from_published_folder(const fs::path& folder) {
  const fs::path file = folder / kPublishedConfig;
  Base base{.name = folder.string(),
            .config = parse_published_config(read_file(file), file.string())};
  base.config.weights = folder.string();
  if (base.config.name.starts_with("vit")) {
    base.sample = {DType::f32, {3, base.pictures.size, base.pictures.size}};
    base.head = "head";
  } else {
    base.sample = {DType::i32, {base.config.positions}};
  }
  base.features = nn::complete_options(base.config.name, model_options(base.config, 0)).width;
  return base;
}

// The module of the last dense layer.
std::string head_of(const Model& model, const TensorType& sample) {
  constexpr std::string_view kWeight = ".weight";
  const Graph graph = inference_graph(model, batch_of(sample, 1)).graph;
  std::string head;
  for (const ValueId id : graph.of_kind(ValueKind::parameter)) {
    const std::string name = graph.value(id).whole_name();
    if (graph.type(id).shape.rank() == 2 && name.ends_with(kWeight))
      head = name.substr(0, name.size() - kWeight.size());
  }
  return head;
}

// The normalisation of a run, "normalise MEAN... DEVIATION...", with one pair or one per colour.
void read_normalisation(const data::Augmentation& augment, PictureRules& rules) {
  rules.means = {0, 0, 0};
  rules.deviations = {1, 1, 1};
  for (const data::Transform& transform : augment.transforms) {
    const std::vector<std::string> words = split(transform.text, ' ');
    if (words.front() != "normalise") continue;
    const size_t each = (words.size() - 1) / 2;
    for (size_t channel = 0; channel < 3; ++channel) {
      const size_t at = 1 + (each == 3 ? channel : 0);
      rules.means[channel] = std::stof(words[at]);
      rules.deviations[channel] = std::stof(words[at + each]);
    }
  }
}

Base from_run(const RunFolder& folder, const fs::path& source) {
  const RunConfig run = read_config(folder.config());
  const data::SampleLayout layout = folder.load_layout();
  Base base{.name = source.string(), .config = run.model};
  base.config.weights = source.string();
  if (base.config.classes == 0) base.config.classes = layout.classes;
  const data::Augmentation augment = data::Augmentation::parse(run.data.augment).for_testing();
  base.sample = sample_type(layout, augment);
  const Shape& shape = base.sample.shape;
  if (base.sample.dtype == DType::f32 && shape.rank() == 3) {
    require(shape[0] == 3 && shape[1] == shape[2], ErrorKind::unsupported,
            "[{}] was trained on pictures of {}, expected square ones in colour", base.name,
            to_string(shape));
    base.pictures.size = base.pictures.scaled = shape[1];
    read_normalisation(augment, base.pictures);
  }
  base.head = head_of(make_model(run.model, layout), base.sample);
  base.classes = layout.class_names;
  return base;
}

[[noreturn]] void fail_unknown_base(const std::string& name) {
  std::vector<std::string> names;
  for (const BaseDescription& base : base_list()) names.push_back(base.name);
  fail(ErrorKind::not_found, "unknown base '{}'{}; known: {}, or the folder of a run", name,
       did_you_mean(name, names), join(names, ", "));
}

}  // namespace

const BaseDescription& find_base(const std::string& name) {
  for (const BaseDescription& base : base_list())
    if (base.name == name) return base;
  fail_unknown_base(name);
}

std::optional<fs::path> find_base_folder(const BaseDescription& base) {
  std::optional<fs::path> folder = data::find_set(base.files);
  if (folder && base.convert && !fs::exists(*folder / kConverted)) return std::nullopt;
  return folder;
}

fs::path get_base(const BaseDescription& base) {
  if (const auto folder = find_base_folder(base)) return *folder;
  const fs::path folder = fetch_entry(base.files);
  if (base.convert) checkpoint::write_safetensors(folder / kConverted, base.convert(folder));
  return folder;
}

Model Base::model(int64_t classes) const {
  ModelConfig changed = config;
  if (classes > 0) changed.classes = classes;
  return make_model(changed, changed.classes);
}

NamedTensors Base::weights() const { return weights_for(config, config.weights); }

Base load_base(const std::string& source) {
  const auto known = std::ranges::find(base_list(), source, &BaseDescription::name);
  if (known != base_list().end()) return from_description(*known);
  const fs::path path = source;
  if (!fs::exists(path)) fail_unknown_base(source);
  if (fs::exists(path / kPublishedConfig)) return from_published_folder(path);
  const std::optional<RunFolder> run = find_run(path);
  require(run.has_value(), ErrorKind::not_found,
          "[{}] is neither a run nor a folder with {} and weights", source, kPublishedConfig);
  return from_run(*run, path);
}

Predictor picture_features(const Base& base, int threads) {
  if (base.embeds) return folded_predictor(base.model(), base.sample, base.weights(), threads);
  require(!base.head.empty() && !base.reads_text(), ErrorKind::invalid_argument,
          "[base '{}'] has no head that gets the features of a picture", base.name);
  const Model model = ending_at(base.model(), {"before " + base.head});
  const NamedTensors weights = base.weights();
  // Networks defined as layers may have batch norms that cannot be folded.
  if (base.config.name.empty()) return {model, base.sample, weights, threads};
  return folded_predictor(model, base.sample, weights, threads);
}

Tensor test_picture(const PictureRules& rules) {
  const int64_t size = rules.size;
  Tensor picture({1, 3, size, size});
  float* next = picture.values<float>().data();
  for (int64_t c = 0; c < 3; ++c)
    for (int64_t y = 0; y < size; ++y)
      for (int64_t x = 0; x < size; ++x) {
        const int64_t level = (2 * x * (c + 1) + y * (3 - c) + x * y / 16) % 256;
        *next++ = (static_cast<float>(level) / 255.0f - rules.means[c]) / rules.deviations[c];
      }
  return picture;
}

std::optional<double> check_base(const BaseDescription& description) {
  const ExpectedFeatures& expected = description.expected;
  if (expected.first.empty()) return std::nullopt;
  Predictor features = picture_features(load_base(description.name));
  const Tensor found = features(test_picture(description.pictures));
  double squares = 0, difference = 0;
  for (const float value : found.values<float>()) squares += double{value} * value;
  for (size_t i = 0; i < expected.first.size(); ++i)
    difference = std::max(difference,
                          std::abs(double{found.values<float>()[i]} - double{expected.first[i]}));
  difference = std::max(difference, std::abs(std::sqrt(squares) - double{expected.length}));
  const double relative = difference / double{expected.length};
  require(relative <= kTolerance, ErrorKind::corrupt,
          "[base '{}'] its features of the test picture differ by {:.2e} of their length, expected "
          "at most {:.0e}; please report it",
          description.name, relative, kTolerance);
  return relative;
}

}  // namespace artel::transfer
