#include "artel/data/sets.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "artel/base/text.h"
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

const Tensor* find_array(const NamedTensors& arrays, const std::vector<std::string>& names) {
  for (const std::string& name : names)
    for (const NamedTensor& entry : arrays)
      if (entry.name == name) return &entry.tensor;
  return nullptr;
}

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
  const ImageFolderOptions images{.size = options.image_size};
  if (fs::is_directory(options.path / "train")) return image_folders(options.path, images);
  return split(image_folder(options.path, images), options.test_fraction, options.seed);
}

Split open_text(const OpenOptions& options) {
  return text(options.path, options.test_fraction,
              {.windows = {.context = options.context, .stride = options.stride},
               .tokenizer = options.tokenizer,
               .masked = options.masked,
               .seed = options.seed});
}

Split open_labelled(const OpenOptions& options, const LabelledTexts& texts) {
  require(fs::exists(options.tokenizer), ErrorKind::invalid_argument,
          "data.tokenizer: got '{}', expected the path of a vocabulary of WordPiece, such as "
          "runs/bert_pretrain/tokenizer",
          options.tokenizer);
  const auto tokenizer =
      std::dynamic_pointer_cast<const WordPiece>(open_tokenizer(options.tokenizer));
  require(tokenizer != nullptr, ErrorKind::invalid_argument,
          "data.tokenizer: [{}] is not a vocabulary of WordPiece", options.tokenizer);
  return split(labelled_text(texts, tokenizer, options.context), options.test_fraction,
               options.seed);
}

Split open_npy(const OpenOptions& options) {
  return split(tensor_dataset(as_planes(read_npy(options.path)), Tensor()), options.test_fraction,
               options.seed);
}

struct Opener {
  const char* name;
  bool fetched;  // in the catalogue
  std::function<Split(const OpenOptions&)> open;
};

const std::vector<Opener>& openers() {
  static const std::vector<Opener> all = {
      {"mnist", true, [](const OpenOptions& o) { return mnist(o.path); }},
      {"fashion_mnist", true, [](const OpenOptions& o) { return fashion_mnist(o.path); }},
      {"kmnist", true, [](const OpenOptions& o) { return kmnist(o.path); }},
      {"cifar10", true, [](const OpenOptions& o) { return cifar10(o.path); }},
      {"cifar100", true, [](const OpenOptions& o) { return cifar100(o.path); }},
      {"tinyshakespeare", true,
       [](OpenOptions o) {
         o.path /= "input.txt";
         return open_text(o);
       }},
      {"sotu", true,
       [](OpenOptions o) {
         o.path = sotu_text(o.path);
         return open_text(o);
       }},
      {"spam_assassin", true,
       [](const OpenOptions& o) { return open_labelled(o, spam_mails(o.path)); }},
      {"a9a", true,
       [](const OpenOptions& o) {
         return libsvm(o.path / "a9a", o.path / "a9a.t", o.test_fraction, o.seed);
       }},
      {"folder", false, open_images},
      {"csv", false,
       [](const OpenOptions& o) {
         return csv(o.path, o.test_path, o.test_fraction, o.seed, o.table);
       }},
      {"npz", false,
       [](const OpenOptions& o) { return npz(read_npz(o.path), o.test_fraction, o.seed); }},
      {"npy", false, open_npy},
      {"libsvm", false,
       [](const OpenOptions& o) { return libsvm(o.path, o.test_path, o.test_fraction, o.seed); }},
      {"text", false, open_text},
      {"labelled_text", false,
       [](const OpenOptions& o) {
         return open_labelled(o, labelled_texts(parse_csv(map_file(o.path)), o.table.target));
       }},
  };
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
  const auto dataset = [](const Tensor* inputs, const Tensor* targets) {
    return tensor_dataset(as_planes(*inputs), targets ? as_labels(*targets) : Tensor());
  };
  const Tensor* train = find_array(arrays, {"x_train"});
  const Tensor* test = find_array(arrays, {"x_test"});
  if (train && test)
    return {dataset(train, find_array(arrays, {"y_train"})),
            dataset(test, find_array(arrays, {"y_test"}))};
  const Tensor* inputs = find_array(arrays, {"x", "data", "images", "inputs"});
  std::vector<std::string> names;
  for (const NamedTensor& entry : arrays) names.push_back(entry.name);
  require(inputs, ErrorKind::not_found,
          "the archive holds the arrays {}, expected x_train and x_test, or x", join(names, ", "));
  return split(dataset(inputs, find_array(arrays, {"y", "target", "labels", "targets"})),
               test_fraction, seed);
}

Split open_set(const std::string& name, const OpenOptions& options) {
  const auto opener = std::find_if(openers().begin(), openers().end(),
                                   [&](const Opener& candidate) { return candidate.name == name; });
  require(opener != openers().end(), ErrorKind::invalid_argument, "no data set is called '{}'{}",
          name, did_you_mean(name, set_names()));
  OpenOptions found = options;
  if (opener->fetched && options.path.empty()) {
    const auto folder = find_set(find_entry(name));
    require(folder.has_value(), ErrorKind::not_found,
            "the data set '{}' is not on this machine; try: artel data get {}", name, name);
    found.path = *folder;
  }
  require(!found.path.empty(), ErrorKind::invalid_argument,
          "the data set '{}' needs a path; set data.path", name);
  Split split = opener->open(found);
  const SampleLayout &train = split.train->layout(), &test = split.test->layout();
  require(test.input == train.input && test.input_type == train.input_type, ErrorKind::shape,
          "[{}] test samples are {} {}, expected {} {} as for training", found.path.string(),
          to_string(test.input_type), to_string(test.input), to_string(train.input_type),
          to_string(train.input));
  return split;
}

std::vector<std::string> set_names() {
  std::vector<std::string> names;
  for (const Opener& opener : openers()) names.emplace_back(opener.name);
  return names;
}

}  // namespace artel::data
