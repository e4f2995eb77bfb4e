#include "artel/data/sets.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>
#include <utility>

#include "artel/base/log.h"
#include "artel/base/registry.h"
#include "artel/base/with_where.h"
#include "artel/data/fetch.h"
#include "artel/data/images/cifar.h"
#include "artel/data/images/idx.h"
#include "artel/data/images/image_folder.h"
#include "artel/data/images/planes.h"
#include "artel/data/tables/libsvm.h"
#include "artel/data/text/labelled_text.h"
#include "artel/data/text/text.h"
#include "artel/data/text/text_archive.h"
#include "artel/tensor/npy.h"

namespace artel::data {
namespace {

namespace fs = std::filesystem;

// Arrays by name, and which of them were asked for.
class Archive {
 public:
  explicit Archive(const NamedTensors& arrays) : arrays_(arrays) {}

  // The first of these names that there is, or null.
  const Tensor* find(const std::vector<std::string>& names) {
    for (const std::string& name : names)
      if (const Tensor* const found = find_tensor(arrays_, name)) {
        used_.insert(name);
        return found;
      }
    return nullptr;
  }

  std::string names() const {
    std::vector<std::string> names;
    for (const NamedTensor& array : arrays_) names.push_back(array.name);
    return join(names, ", ");
  }

  // Throws for unused arrays that look like an input or a target: y2, x3 without x2, x2 next to
  // x_train.
  void check_rest() const {
    for (const NamedTensor& array : arrays_) {
      const bool meant = array.name.size() > 1 && (array.name[0] == 'x' || array.name[0] == 'y') &&
                         std::isdigit(static_cast<unsigned char>(array.name[1]));
      require(!meant || used_.contains(array.name), ErrorKind::invalid_argument,
              "the archive holds the arrays {}, of which '{}' has no meaning: expected inputs x, "
              "x2, x3, ... without a gap, one target y, and _train or _test after all of them or "
              "none",
              names(), array.name);
    }
  }

 private:
  const NamedTensors& arrays_;
  std::set<std::string> used_;
};

// Converts bytes [n, height, width] or [n, height, width, channels] to planes [n, channels, height,
// width]. Returns other tensors unchanged.
Tensor as_planes(const Tensor& tensor) {
  const Shape& shape = tensor.shape();
  if (tensor.dtype() != DType::u8) return tensor;
  if (shape.rank() == 3) return tensor.reshaped({shape[0], 1, shape[1], shape[2]});
  if (shape.rank() != 4 || (shape[3] != 1 && shape[3] != 3) || shape[1] == 1 || shape[1] == 3)
    return tensor;
  return channels_first(tensor);
}

// Labels [n, 1] as [n].
Tensor as_labels(const Tensor& tensor) {
  const Shape& shape = tensor.shape();
  const bool column = shape.rank() == 2 && shape[1] == 1 && !is_floating(tensor.dtype());
  return column ? tensor.reshaped({shape[0]}) : tensor;
}

Split open_images(const OpenOptions& options) {
  const ImageFolderOptions images{.size = options.image_size, .skip_broken = options.skip_broken};
  if (fs::is_directory(options.path / "train")) return image_folders(options.path, images);
  return split(image_folder(options.path, images), options.test_fraction, options.seed);
}

Split open_text(const OpenOptions& options) {
  return text(options.path, options.test_fraction,
              {.windows = {.context = options.context, .stride = options.stride},
               .lines = options.lines,
               .tokenizer = options.tokenizer,
               .masked = options.masked,
               .seed = options.seed});
}

constexpr const char* kLearntVocabulary = "wordpiece 8192";

// The concatenated training texts, from which a vocabulary is learned.
std::string training_text(const LabelledTexts& texts, const std::vector<int64_t>& train) {
  constexpr size_t kEnough = 16 << 20;
  std::string all;
  for (const int64_t i : train) {
    all += texts.texts[i] + '\n';
    if (!texts.seconds.empty()) all += texts.seconds[i] + '\n';
    if (all.size() >= kEnough) break;
  }
  return all;
}

// Without texts for testing, a part is held out.
Split open_labelled(const OpenOptions& options, const LabelledTexts& texts,
                    const std::optional<LabelledTexts>& tests = {}) {
  const bool automatic = options.tokenizer == OpenOptions().tokenizer;
  if (automatic)
    log(LogLevel::info,
        "data.tokenizer: texts with a class become WordPiece tokens; learning \"{}\"",
        kLearntVocabulary);
  const std::string name = automatic ? kLearntVocabulary : options.tokenizer;
  const std::vector<double> classes(texts.labels.begin(), texts.labels.end());
  SplitSamples parts = split_samples(std::ssize(texts.texts), tests ? 0 : options.test_fraction,
                                     options.seed, classes);
  const TokenizerPtr tokenizer = fs::exists(name)
                                     ? open_tokenizer(name)
                                     : make_tokenizer(name, training_text(texts, parts.train));
  const DatasetPtr all = labelled_text(texts, tokenizer, options.context);
  if (tests) return {all, labelled_text(*tests, tokenizer, options.context)};
  return {subset(all, std::move(parts.train)), subset(all, std::move(parts.test))};
}

Split open_labelled_tables(const OpenOptions& options) {
  const auto read = [&](const fs::path& path) {
    return labelled_texts(read_csv(path), options.table.target, options.table.ignore);
  };
  const LabelledTexts texts = read(options.path);
  if (options.test_path.empty()) return open_labelled(options, texts);
  return open_labelled(
      options, texts,
      with_classes(read(options.test_path), texts.class_names, options.test_path.string()));
}

Split open_npy(const OpenOptions& options) {
  return split(tensor_dataset(as_planes(read_npy(options.path)), Tensor()), options.test_fraction,
               options.seed);
}

Split open_libsvm(const OpenOptions& o, const fs::path& train, const fs::path& test) {
  return libsvm(train, test, o.test_fraction, o.seed, o.table.task == Task::values);
}

std::vector<SetDefinition> builtin_sets() {
  const std::vector<std::string> of_text = {"context", "stride", "tokenizer", "lines"};
  const auto images = [](const std::string& name, Split (*open)(const fs::path&)) {
    return SetDefinition{.name = name,
                         .open = [open](const OpenOptions& o) { return open(o.path); },
                         .has_test_part = true,
                         .fetched = true};
  };
  return {
      images("mnist", mnist),
      images("fashion_mnist", fashion_mnist),
      images("kmnist", kmnist),
      images("cifar10", cifar10),
      images("cifar100", cifar100),
      {.name = "tinyshakespeare",
       .open =
           [](OpenOptions o) {
             o.path /= "input.txt";
             return open_text(o);
           },
       .used_options = of_text,
       .fetched = true},
      {.name = "sotu",
       .open =
           [](OpenOptions o) {
             o.path = sotu_text(o.path);
             return open_text(o);
           },
       .used_options = of_text,
       .fetched = true},
      {.name = "spam_assassin",
       .open = [](const OpenOptions& o) { return open_labelled(o, spam_mails(o.path)); },
       .used_options = {"context", "tokenizer"},
       .fetched = true},
      {.name = "a9a",
       .open =
           [](const OpenOptions& o) { return open_libsvm(o, o.path / "a9a", o.path / "a9a.t"); },
       .has_test_part = true,
       .sparse = true,
       .fetched = true},
      {.name = "folder", .open = open_images, .used_options = {"image_size", "skip_broken"}},
      {.name = "csv",
       .open =
           [](const OpenOptions& o) {
             return csv(o.path, o.test_path, o.test_fraction, o.seed, o.table, o.learnt);
           },
       .used_options = {"test_path", "target", "ignore", "categorical", "scale_target",
                        "decimal_comma"}},
      {.name = "npz",
       .open =
           [](const OpenOptions& o) {
             const NamedTensors arrays = read_npz(o.path);
             return with_where(o.path.string(),
                               [&] { return npz(arrays, o.test_fraction, o.seed); });
           }},
      {.name = "npy", .open = open_npy},
      {.name = "idx",
       .open = [](const OpenOptions& o) { return idx(o.path, o.test_fraction, o.seed); }},
      {.name = "libsvm",
       .open = [](const OpenOptions& o) { return open_libsvm(o, o.path, o.test_path); },
       .used_options = {"test_path"},
       .sparse = true},
      {.name = "text", .open = open_text, .used_options = of_text},
      {.name = "labelled_text",
       .open = open_labelled_tables,
       .used_options = {"test_path", "target", "ignore", "context", "tokenizer"}},
  };
}

// "f32 [28, 28]", or "f32 [5] of x [3] and x2 [2]".
std::string inputs_of(const SampleLayout& layout) {
  std::vector<std::string> parts;
  for (const InputPart& part : layout.parts)
    parts.push_back(part.name + " " + to_string(part.shape));
  return fmt::format("{} {}{}{}", to_string(layout.input_type), to_string(layout.input),
                     parts.empty() ? "" : " of ", join(parts, " and "));
}

Registry<SetDefinition>& sets() {
  static Registry<SetDefinition> all(
      "data set",
      [] {
        Registry<SetDefinition>::Entries entries;
        for (SetDefinition& set : builtin_sets()) entries.emplace_back(set.name, std::move(set));
        return entries;
      }(),
      Names::words);
  return all;
}

bool lists(const SetDefinition& set, const std::string& option) {
  return std::find(set.used_options.begin(), set.used_options.end(), option) !=
         set.used_options.end();
}

}  // namespace

Split mnist(const fs::path& folder) {
  return idx_images(folder, {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"});
}

Split fashion_mnist(const fs::path& folder) {
  return idx_images(folder, {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal",
                             "Shirt", "Sneaker", "Bag", "Ankle boot"});
}

Split kmnist(const fs::path& folder) {
  return idx_images(folder, {"o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo"});
}

DatasetPtr array_dataset(const Tensor& inputs, const Tensor& targets, int64_t classes,
                         std::vector<std::string> class_names) {
  return tensor_dataset(as_planes(inputs), as_labels(targets), classes, std::move(class_names));
}

Split npz(const NamedTensors& arrays, double test_fraction, uint64_t seed) {
  Archive archive(arrays);
  // `ending` is what follows x2, x3, ... in the names of more inputs.
  const auto dataset = [&](const Tensor* inputs, const Tensor* targets, const char* ending) {
    DatasetPtr first = array_dataset(*inputs, targets ? *targets : Tensor());
    std::vector<std::pair<std::string, DatasetPtr>> sets = {{"x", first}};
    for (int number = 2;; ++number) {
      const std::string name = fmt::format("x{}", number);
      const Tensor* const more = archive.find({name + ending});
      if (!more) return sets.size() > 1 ? join_inputs(sets) : first;
      sets.emplace_back(name, array_dataset(*more));
    }
  };
  const Tensor* const train = archive.find({"x_train"});
  const Tensor* const test = archive.find({"x_test"});
  Split result;
  if (train && test) {
    result = {dataset(train, archive.find({"y_train"}), "_train"),
              dataset(test, archive.find({"y_test"}), "_test")};
  } else {
    const Tensor* const inputs = archive.find({"x", "data", "images", "inputs"});
    require(inputs, ErrorKind::not_found,
            "the archive holds the arrays {}, expected x_train and x_test, or x", archive.names());
    result = split(dataset(inputs, archive.find({"y", "target", "labels", "targets"}), ""),
                   test_fraction, seed);
  }
  archive.check_rest();
  return result;
}

Split open_set(const std::string& name, const OpenOptions& options) {
  const SetDefinition& set = sets().at(name);
  OpenOptions found = options;
  if (set.fetched && options.path.empty()) {
    const auto folder = find_set(find_entry(name));
    require(folder.has_value(), ErrorKind::not_found,
            "the data set '{}' is not on this machine; try: artel data get {}", name, name);
    found.path = *folder;
  }
  require(!found.path.empty() || !set.needs_path, ErrorKind::invalid_argument,
          "the data set '{}' needs a path; set data.path", name);
  Split split = set.open(found);
  const std::string train = inputs_of(split.train->layout()),
                    test = inputs_of(split.test->layout());
  require(test == train, ErrorKind::shape,
          "[{}] test samples are {}, expected {} like the training samples", found.path.string(),
          test, train);
  return split;
}

bool is_sparse(const std::string& name) {
  const SetDefinition* const set = sets().find(name);
  return set && set->sparse;
}

bool uses_option(const std::string& name, const std::string& option) {
  const SetDefinition* const set = sets().find(name);
  if (!set || set->uses_all_options || lists(*set, option)) return true;
  const auto all = sets().all();
  return std::none_of(all.begin(), all.end(),
                      [&](const SetDefinition* other) { return lists(*other, option); });
}

bool has_test_part(const std::string& name) {
  const SetDefinition* const set = sets().find(name);
  return set && set->has_test_part;
}

std::vector<std::string> set_names() { return sets().names(); }

std::vector<std::string> kinds_of_own_data() {
  std::vector<std::string> kinds;
  for (const SetDefinition* set : sets().all())
    if (!set->fetched && set->needs_path) kinds.push_back(set->name);
  return kinds;
}

void register_dataset(SetDefinition definition) {
  require_function("data set", definition.name, definition.open);
  std::string name = definition.name;
  sets().add(std::move(name), std::move(definition));
}

void register_dataset(const std::string& name, std::function<Split(const OpenOptions&)> open) {
  register_dataset(
      {.name = name, .open = std::move(open), .needs_path = false, .uses_all_options = true});
}

}  // namespace artel::data
