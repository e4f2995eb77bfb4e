#include "artel/checkpoint/torch_file.h"

#include <algorithm>
#include <array>
#include <map>

#include "artel/base/zip.h"
#include "artel/checkpoint/pickle.h"
#include "artel/tensor/from_bytes.h"

namespace artel::checkpoint {
namespace {

// A legacy file starts with a pickle of the number 0x1950a86a20f9469cfc6c.
constexpr std::string_view kLegacyMagic("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.",
                                        15);
constexpr int64_t kLegacyProtocol = 1001;
constexpr int kMaxDepth = 64;
constexpr int64_t kMaxValues = 1'000'000;  // visits; shared containers count each time
// Limits the total length of names, because a pickle can reuse one text any number of times.
constexpr size_t kLongestName = 1024;
constexpr size_t kMostNameBytes = 64 << 20;

constexpr std::array<std::pair<std::string_view, DType>, 10> kStorageTypes = {
    {{"FloatStorage", DType::f32},
     {"DoubleStorage", DType::f64},
     {"HalfStorage", DType::f16},
     {"BFloat16Storage", DType::bf16},
     {"CharStorage", DType::i8},
     {"ByteStorage", DType::u8},
     {"ShortStorage", DType::i16},
     {"IntStorage", DType::i32},
     {"LongStorage", DType::i64},
     {"BoolStorage", DType::boolean}}};

const DType* find_type(std::string_view storage) {
  const auto found = std::find_if(kStorageTypes.begin(), kStorageTypes.end(),
                                  [&](auto& entry) { return entry.first == storage; });
  return found == kStorageTypes.end() ? nullptr : &found->second;
}

[[noreturn]] void refuse(const ByteReader& where, const std::string& what) {
  fail(ErrorKind::unsupported,
       "[{}] offset {}: '{}' is refused: only tensors, numbers, text and plain containers are read",
       where.name(), where.offset(), what);
}

// Recognises PyTorch's pickled tensors.
class TorchHost : public PickleHost {
 public:
  PickleValue global(const std::string& name, const ByteReader& where) override {
    static constexpr std::string_view kKnown[] = {
        "collections.OrderedDict", "torch._utils._rebuild_tensor",
        "torch._utils._rebuild_tensor_v2", "torch._utils._rebuild_parameter", "torch.Size"};
    const bool storage = name.starts_with("torch.") && find_type(name.substr(6));
    if (!storage && std::find(std::begin(kKnown), std::end(kKnown), name) == std::end(kKnown))
      refuse(where, name);
    return {PickleGlobal{name}};
  }

  PickleValue* call(PickleValue* function, PickleValue* arguments, PickleHeap& heap,
                    const ByteReader& where) override {
    const auto* name = function->as<PickleGlobal>();
    const auto* list = arguments->as<PickleList>();
    where.require(name && list, "a call of something that has no name, or without arguments");
    const auto& items = list->items;
    if (name->name == "collections.OrderedDict") {
      where.require(items.empty(), "an OrderedDict with arguments");
      return heap.make({PickleDict{}});
    }
    if (name->name == "torch.Size" || name->name == "torch._utils._rebuild_parameter") {
      where.require(!items.empty(), "{} without arguments", name->name);
      return items[0];
    }
    if (name->name.starts_with("torch._utils._rebuild_tensor"))
      return heap.make({rebuild(items, where)});
    refuse(where, name->name + "(...)");
  }

  // ("storage", class, key, location, elements[, view]), where a view of legacy files is (key,
  // offset, elements).
  PickleValue persistent(PickleValue* id, const ByteReader& where) override {
    const auto* tuple = id->as<PickleList>();
    where.require(tuple && tuple->items.size() >= 5, "not the identifier of a storage");
    const auto& items = tuple->items;
    const auto* kind = items[0]->as<std::string>();
    const auto* type = items[1]->as<PickleGlobal>();
    const auto* key = items[2]->as<std::string>();
    const auto* elements = items[4]->as<int64_t>();
    where.require(kind && *kind == "storage" && type && type->name.ends_with("Storage") && key &&
                      elements && *elements >= 0,
                  "not the identifier of a storage");
    where.require(key->size() <= kLongestName, "a storage whose key has {} bytes", key->size());
    PickleStorage storage{type->name.substr(type->name.rfind('.') + 1), *key, *elements};
    const auto* view = items.size() > 5 ? items[5]->as<PickleList>() : nullptr;
    if (view) {
      const auto* offset = view->items.size() == 3 ? view->items[1]->as<int64_t>() : nullptr;
      where.require(offset && *offset >= 0, "not the view of a storage");
      storage.offset = *offset;
    }
    return {storage};
  }

 private:
  // (storage, offset, shape, strides, ...)
  static PickleTensor rebuild(const std::vector<PickleValue*>& items, const ByteReader& where) {
    where.require(items.size() >= 4, "a tensor needs storage, offset, shape and strides");
    const auto* storage = items[0]->as<PickleStorage>();
    const auto* offset = items[1]->as<int64_t>();
    where.require(storage && offset && *offset >= 0, "a tensor without storage or offset");
    return {*storage, *offset, Shape(integers(items[2], where)), integers(items[3], where)};
  }

  static std::vector<int64_t> integers(const PickleValue* value, const ByteReader& where) {
    const auto* list = value->as<PickleList>();
    where.require(list && list->items.size() <= 32, "not the shape or the strides of a tensor");
    std::vector<int64_t> result;
    for (const PickleValue* item : list->items) {
      const auto* number = item->as<int64_t>();
      where.require(number && *number >= 0, "an extent that is not a whole number");
      result.push_back(*number);
    }
    return result;
  }
};

// Tensor descriptions with names.
using Tensors = std::vector<std::pair<std::string, PickleTensor>>;

// Collects the tensors below a value.
class Flattener {
 public:
  explicit Flattener(std::string file) : file_(std::move(file)) {}

  Tensors found;

  void visit(const PickleValue& value, const std::string& name, int depth = 0) {
    require(depth <= kMaxDepth && ++visited_ <= kMaxValues, ErrorKind::corrupt,
            "[{}] containers at '{}' are nested too deeply, or too many", file_, name);
    if (const auto* tensor = value.as<PickleTensor>()) {
      found.emplace_back(name.empty() ? "tensor" : name, *tensor);
      name_bytes_ += name.size();
      require(name_bytes_ <= kMostNameBytes, ErrorKind::corrupt,
              "[{}] the names of its tensors have more than {} bytes", file_, kMostNameBytes);
    } else if (const auto* list = value.as<PickleList>()) {
      for (size_t i = 0; i < list->items.size(); ++i)
        visit(*list->items[i], joined(name, std::to_string(i)), depth + 1);
    } else if (const auto* dict = value.as<PickleDict>()) {
      for (const auto& [key, item] : dict->items) visit(*item, joined(name, text(*key)), depth + 1);
    }
  }

 private:
  std::string joined(const std::string& name, const std::string& key) const {
    require(name.size() + key.size() < kLongestName, ErrorKind::corrupt,
            "[{}] a name of {} bytes below '{}'; at most {} are read", file_,
            name.size() + key.size(), name, kLongestName);
    return name.empty() ? key : name + "." + key;
  }

  std::string text(const PickleValue& key) const {
    if (const auto* text = key.as<std::string>()) return text->substr(0, kLongestName);
    if (const auto* number = key.as<int64_t>()) return std::to_string(*number);
    fail(ErrorKind::unsupported, "[{}] a dictionary whose keys are neither text nor numbers",
         file_);
  }

  std::string file_;
  int64_t visited_ = 0;
  size_t name_bytes_ = 0;
};

Tensor materialise(const PickleTensor& tensor, const Bytes& storage, const std::string& name) {
  const DType* type = find_type(tensor.storage.type);
  require(type, ErrorKind::unsupported, "[{}] '{}' has a {}, which Artel does not read",
          storage.name, name, tensor.storage.type);
  Bytes named = storage;
  named.name += ": tensor '" + name + "'";
  int64_t offset = 0;
  require(!__builtin_add_overflow(tensor.offset, tensor.storage.offset, &offset),
          ErrorKind::corrupt, "[{}] starts far outside its storage", named.name);
  return strided_tensor(named, tensor.shape, *type, offset, tensor.strides);
}

// Checks the total size before allocating. Tensors may share a storage, but a small file must not
// describe many times its size.
void check_total(const Tensors& tensors, const Bytes& bytes) {
  double total = 0;
  for (const auto& [name, tensor] : tensors) {
    double size = 8;  // bytes of the widest element type
    for (const int64_t extent : tensor.shape.extents()) size *= static_cast<double>(extent);
    total += size;
  }
  require(total <= 64.0 * static_cast<double>(bytes.data.size()) + (64 << 20), ErrorKind::corrupt,
          "[{}] a file of {} bytes describes tensors of up to {:.0f} bytes", bytes.name,
          bytes.data.size(), total);
}

// The model's dictionary in a checkpoint, or the root.
const PickleValue& model_of(const PickleValue& root) {
  const auto* dict = root.as<PickleDict>();
  if (!dict) return root;
  for (const std::string_view wrapper : {"state_dict", "model_state_dict", "model"})
    for (const auto& [key, item] : dict->items) {
      const auto* name = key->as<std::string>();
      if (name && *name == wrapper && item->as<PickleDict>()) return *item;
    }
  return root;
}

void drop_module_prefix(Tensors& tensors) {
  constexpr std::string_view kPrefix = "module.";
  for (const auto& [name, tensor] : tensors)
    if (!name.starts_with(kPrefix)) return;
  for (auto& [name, tensor] : tensors) name.erase(0, kPrefix.size());
}

Tensors flatten(const PickleValue& root, const Bytes& bytes, TorchPart part) {
  Flattener flattener(bytes.name);
  flattener.visit(part == TorchPart::model ? model_of(root) : root, "");
  check_total(flattener.found, bytes);
  if (part == TorchPart::model) drop_module_prefix(flattener.found);
  return std::move(flattener.found);
}

NamedTensors parse_zip(const Bytes& bytes, TorchPart part) {
  const ZipArchive archive(bytes);
  const auto& entries = archive.entries();
  const auto pickle = std::find_if(entries.begin(), entries.end(), [](const auto& entry) {
    return entry.name.ends_with("/data.pkl");
  });
  require(pickle != entries.end(), ErrorKind::corrupt,
          "[{}] is a zip archive without data.pkl; TorchScript and tar files are not read",
          bytes.name);
  const std::string folder = pickle->name.substr(0, pickle->name.size() - 8);
  if (const auto* order = archive.find(folder + "byteorder"))
    require(archive.read_start(*order, 16).text() == "little", ErrorKind::unsupported,
            "[{}] was written on a big-endian machine", bytes.name);

  const Bytes program = archive.read(*pickle);
  ByteReader reader(program);
  TorchHost host;
  PickleHeap heap;
  const PickleValue* root = run_pickle(reader, host, heap);

  std::map<std::string, Bytes> storages;
  NamedTensors tensors;
  for (const auto& [name, tensor] : flatten(*root, bytes, part)) {
    const std::string& key = tensor.storage.key;
    if (!storages.count(key)) {
      const auto* entry = archive.find(folder + "data/" + key);
      require(entry, ErrorKind::corrupt, "[{}] tensor '{}' needs {}data/{}, which is missing",
              bytes.name, name, folder, key);
      const DType* type = find_type(tensor.storage.type);
      const auto expected =
          type ? static_cast<double>(tensor.storage.elements) * static_cast<double>(size_of(*type))
               : static_cast<double>(entry->size);
      require(static_cast<double>(entry->size) == expected, ErrorKind::corrupt,
              "[{}:{}] has {} bytes, expected {:.0f} for {} elements of a {}", bytes.name,
              entry->name, entry->size, expected, tensor.storage.elements, tensor.storage.type);
      storages[key] = archive.read(*entry);
    }
    tensors.push_back({name, materialise(tensor, storages[key], name)});
  }
  return tensors;
}

// Layout: magic, protocol, machine information, the object, and the keys of the storages; then for
// each storage the number of elements and the elements.
NamedTensors parse_legacy(const Bytes& bytes, TorchPart part) {
  ByteReader reader(bytes);
  reader.take(kLegacyMagic.size());
  TorchHost host;
  PickleHeap heap;
  const auto* protocol = run_pickle(reader, host, heap)->as<int64_t>();
  reader.require(protocol && *protocol == kLegacyProtocol, "not protocol {} of a PyTorch file",
                 kLegacyProtocol);
  run_pickle(reader, host, heap);
  const PickleValue* root = run_pickle(reader, host, heap);
  const auto* keys = run_pickle(reader, host, heap)->as<PickleList>();
  reader.require(keys, "the keys of the storages are not a list");

  std::map<std::string, size_t> element_sizes;
  for (const auto& [name, tensor] : flatten(*root, bytes, TorchPart::all))
    if (const DType* type = find_type(tensor.storage.type))
      element_sizes[tensor.storage.key] = size_of(*type);
  std::map<std::string, Bytes> storages;
  for (const PickleValue* item : keys->items) {
    const auto* key = item->as<std::string>();
    reader.require(key && element_sizes.count(*key), "a storage that no tensor uses");
    const auto elements = reader.little<uint64_t>();
    reader.require(elements <= reader.left() / element_sizes[*key],
                   "a storage of {} elements, but {} bytes are left; it may be truncated", elements,
                   reader.left());
    const size_t offset = reader.offset();
    storages[*key] = bytes.part(offset, reader.take(elements * element_sizes[*key]).size());
  }
  NamedTensors tensors;
  for (const auto& [name, tensor] : flatten(*root, bytes, part)) {
    require(storages.count(tensor.storage.key), ErrorKind::corrupt,
            "[{}] tensor '{}' needs the storage {}, which is missing", bytes.name, name,
            tensor.storage.key);
    tensors.push_back({name, materialise(tensor, storages[tensor.storage.key], name)});
  }
  return tensors;
}

}  // namespace

bool is_legacy_torch(const Bytes& bytes) {
  return bytes.text().substr(0, kLegacyMagic.size()) == kLegacyMagic;
}

NamedTensors parse_torch(const Bytes& bytes, TorchPart part) {
  if (is_zip(bytes)) return parse_zip(bytes, part);
  if (is_legacy_torch(bytes)) return parse_legacy(bytes, part);
  fail(ErrorKind::corrupt, "[{}] offset 0: neither a zip archive nor a legacy PyTorch file",
       bytes.name);
}

NamedTensors read_torch(const std::filesystem::path& path, TorchPart part) {
  return parse_torch(map_file(path), part);
}

}  // namespace artel::checkpoint
