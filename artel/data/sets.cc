#include "artel/data/sets.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>
#include <utility>

#include "artel/base/log.h"
#include "artel/base/registry.h"
#include "artel/base/with_where.h"
#include "artel/data/cifar.h"
#include "artel/data/fetch.h"
#include "artel/data/idx.h"
#include "artel/data/image_folder.h"
#include "artel/data/labelled_text.h"
#include "artel/data/libsvm.h"
#include "artel/data/planes.h"
#include "artel/data/text.h"
#include "artel/data/text_archive.h"
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

  // Throws for a left-over that is meant as an input or a target: y2, x3 without x2, x2 beside
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

// Bytes [n, height, width] or [n, height, width, channels] as planes [n, channels, height, width];
// anything else as it is.
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

// The texts that a vocabulary is learnt from: those for training, one after the other.
std::string training_text(const LabelledTexts& texts, double test_fraction, uint64_t seed) {
  constexpr size_t kEnough = 16 << 20;
  std::string all;
  for (const int64_t i :
       split_samples(static_cast<int64_t>(texts.texts.size()), test_fraction, seed).train) {
    all += texts.texts[i] + '\n';
    if (!texts.seconds.empty()) all += texts.seconds[i] + '\n';
    if (all.size() >= kEnough) break;
  }
  return all;
}

// Without texts for testing, a part is held out.
Split open_labelled(const OpenOptions& options, const LabelledTexts& texts,
                    const std::optional<LabelledTexts>& tests = {}) {
  const std::string& name = options.tokenizer;
  const bool learns = name == OpenOptions().tokenizer || name.starts_with("wordpiece");
  require(learns || fs::exists(name), ErrorKind::invalid_argument,
          "data.tokenizer: got '{}', expected such as \"wordpiece 8192\", or the path of a "
          "WordPiece vocabulary such as runs/bert_pretrain/tokenizer",
          name);
  if (name == OpenOptions().tokenizer)
    log(LogLevel::info,
        "data.tokenizer: texts with a class become WordPiece tokens; learning \"{}\"",
        kLearntVocabulary);
  const auto tokenizer = std::dynamic_pointer_cast<const WordPiece>(
      learns ? make_tokenizer(name.starts_with("wordpiece") ? name : kLearntVocabulary,
                              training_text(texts, tests ? 0 : options.test_fraction, options.seed))
             : open_tokenizer(name));
  require(tokenizer != nullptr, ErrorKind::invalid_argument,
          "data.tokenizer: [{}] is not a WordPiece vocabulary", name);
  const DatasetPtr all = labelled_text(texts, tokenizer, options.context);
  if (tests) return {all, labelled_text(*tests, tokenizer, options.context)};
  return split(all, options.test_fraction, options.seed);
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

struct Opener {
  std::string name;
  bool fetched;  // in the catalogue
  std::function<Split(const OpenOptions&)> open;
  std::vector<std::string> heeds = {};  // of kKindOptions
  bool tested = false;                  // has a test part of its own
  bool sparse = false;
  bool registered = false;  // by a program
};

// Options that some kinds of data do not have.
const std::vector<std::string> kKindOptions = {
    "test_path", "target", "ignore",    "categorical", "scale_target", "image_size",
    "context",   "stride", "tokenizer", "lines",       "skip_broken",  "decimal_comma"};

Split open_libsvm(const OpenOptions& o, const fs::path& train, const fs::path& test) {
  return libsvm(train, test, o.test_fraction, o.seed, o.table.task == Task::values);
}

std::vector<Opener> builtin_openers() {
  const std::vector<std::string> of_text = {"context", "stride", "tokenizer", "lines"};
  const auto images = [](const std::string& name, Split (*open)(const fs::path&)) {
    return Opener{
        name, true, [open](const OpenOptions& o) { return open(o.path); }, {}, /*tested=*/true};
  };
  return {
      images("mnist", mnist),
      images("fashion_mnist", fashion_mnist),
      images("kmnist", kmnist),
      images("cifar10", cifar10),
      images("cifar100", cifar100),
      {"tinyshakespeare", true,
       [](OpenOptions o) {
         o.path /= "input.txt";
         return open_text(o);
       },
       of_text},
      {"sotu", true,
       [](OpenOptions o) {
         o.path = sotu_text(o.path);
         return open_text(o);
       },
       of_text},
      {"spam_assassin",
       true,
       [](const OpenOptions& o) { return open_labelled(o, spam_mails(o.path)); },
       {"context", "tokenizer"}},
      {"a9a",
       true,
       [](const OpenOptions& o) { return open_libsvm(o, o.path / "a9a", o.path / "a9a.t"); },
       {},
       /*tested=*/true,
       /*sparse=*/true},
      {"folder", false, open_images, {"image_size", "skip_broken"}},
      {"csv",
       false,
       [](const OpenOptions& o) {
         return csv(o.path, o.test_path, o.test_fraction, o.seed, o.table, o.learnt);
       },
       {"test_path", "target", "ignore", "categorical", "scale_target", "decimal_comma"}},
      {"npz", false,
       [](const OpenOptions& o) {
         const NamedTensors arrays = read_npz(o.path);
         return with_where(o.path.string(), [&] { return npz(arrays, o.test_fraction, o.seed); });
       }},
      {"npy", false, open_npy},
      {"idx", false, [](const OpenOptions& o) { return idx(o.path, o.test_fraction, o.seed); }},
      {"libsvm",
       false,
       [](const OpenOptions& o) { return open_libsvm(o, o.path, o.test_path); },
       {"test_path"},
       /*tested=*/false,
       /*sparse=*/true},
      {"text", false, open_text, of_text},
      {"labelled_text",
       false,
       open_labelled_tables,
       {"test_path", "target", "ignore", "context", "tokenizer"}},
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

Registry<Opener>& openers() {
  static Registry<Opener> all(
      "data set",
      [] {
        Registry<Opener>::Entries entries;
        for (Opener& opener : builtin_openers())
          entries.emplace_back(opener.name, std::move(opener));
        return entries;
      }(),
      Names::words);
  return all;
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

Split npz(const NamedTensors& arrays, double test_fraction, uint64_t seed) {
  Archive archive(arrays);
  // `ending` is what follows x2, x3, ... in the names of more inputs.
  const auto dataset = [&](const Tensor* inputs, const Tensor* targets, const char* ending) {
    DatasetPtr first = tensor_dataset(as_planes(*inputs), targets ? as_labels(*targets) : Tensor());
    std::vector<std::pair<std::string, DatasetPtr>> sets = {{"x", first}};
    for (int number = 2;; ++number) {
      const std::string name = fmt::format("x{}", number);
      const Tensor* const more = archive.find({name + ending});
      if (!more) return sets.size() > 1 ? join_inputs(sets) : first;
      sets.emplace_back(name, tensor_dataset(as_planes(*more), Tensor()));
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
  const Opener* const opener = &openers().at(name);
  OpenOptions found = options;
  if (opener->fetched && options.path.empty()) {
    const auto folder = find_set(find_entry(name));
    require(folder.has_value(), ErrorKind::not_found,
            "the data set '{}' is not on this machine; try: artel data get {}", name, name);
    found.path = *folder;
  }
  require(!found.path.empty() || opener->registered, ErrorKind::invalid_argument,
          "the data set '{}' needs a path; set data.path", name);
  Split split = opener->open(found);
  const std::string train = inputs_of(split.train->layout()),
                    test = inputs_of(split.test->layout());
  require(test == train, ErrorKind::shape, "[{}] test samples are {}, expected {} as for training",
          found.path.string(), test, train);
  return split;
}

bool is_sparse(const std::string& name) {
  const Opener* const opener = openers().find(name);
  return opener && opener->sparse;
}

bool heeds(const std::string& name, const std::string& option) {
  const auto is_in = [&](const std::vector<std::string>& options) {
    return std::find(options.begin(), options.end(), option) != options.end();
  };
  const Opener* const opener = openers().find(name);
  return !opener || opener->registered || !is_in(kKindOptions) || is_in(opener->heeds);
}

bool has_test_part(const std::string& name) {
  const Opener* const opener = openers().find(name);
  return opener && opener->tested;
}

std::vector<std::string> set_names() { return openers().names(); }

std::vector<std::string> kinds_of_own_data() {
  std::vector<std::string> kinds;
  for (const Opener& opener : builtin_openers())
    if (!opener.fetched) kinds.push_back(opener.name);
  return kinds;
}

void register_dataset(const std::string& name, std::function<Split(const OpenOptions&)> open) {
  require_function("data set", name, open);
  openers().add(name,
                {.name = name, .fetched = false, .open = std::move(open), .registered = true});
}

}  // namespace artel::data
