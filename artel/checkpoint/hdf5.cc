#include "artel/checkpoint/hdf5.h"

#include <algorithm>
#include <optional>

#include "artel/tensor/from_bytes.h"

namespace artel::checkpoint {
namespace {

constexpr std::string_view kHdf5Signature("\x89HDF\r\n\x1a\n", 8);
constexpr int kMostDepth = 32;            // nesting of groups and of their B-trees
constexpr uint64_t kMostParts = 1 << 18;  // total number of headers, trees, and lists read
constexpr size_t kLongestHdf5Name = 4096;
constexpr size_t kMessageBytes = 8;          // minimum size of a header message
constexpr uint64_t kNowhere = ~uint64_t{0};  // the undefined address

enum class Hdf5Message : uint16_t {
  dataspace = 1,
  datatype = 3,
  layout = 8,
  filters = 11,
  continuation = 16,
  symbol_table = 17
};

// The content of an object header.
struct Hdf5Object {
  std::optional<uint64_t> tree, heap;  // only for groups
  std::optional<Shape> shape;
  std::optional<DType> type;
  bool is_number = false;  // false for text, compound types, ...
  std::optional<Bytes> data;
  std::string obstacle = {};  // reason why the data cannot be read
};

class Hdf5Reader {
 public:
  explicit Hdf5Reader(const Bytes& bytes) : bytes_(bytes), budget_(bytes.name) {
    budget_.earn(bytes.data.size());
  }

  NamedTensors read() {
    ByteReader in = at(kHdf5Signature.size());
    const auto version = in.little<uint8_t>();
    if (version > 1)
      fail(ErrorKind::unsupported,
           "[{}] superblock version {}, but Artel reads 0 and 1; write the file again with "
           "libver='earliest'",
           bytes_.name, version);
    in.take(4);  // unused versions and a reserved byte
    offset_size_ = in.little<uint8_t>();
    length_size_ = in.little<uint8_t>();
    in.require(offset_size_ == 8 && length_size_ == 8,
               "offsets of {} and lengths of {} bytes, expected 8 and 8", offset_size_,
               length_size_);
    in.take(1 + 2 + 2 + 4 + (version == 1 ? 4 : 0));
    const auto base = in.little<uint64_t>();
    in.require(base == 0, "a base address of {}, expected 0", base);
    in.take(3 * 8 + 8);  // free space, end of file, driver, name of the root
    read_object(in.little<uint64_t>(), "", 0);
    return std::move(tensors_);
  }

 private:
  ByteReader at(uint64_t offset) const {
    ByteReader in(bytes_);
    in.seek(offset);
    return in;
  }

  // Counts every part read, because a file may point to one part from many places.
  void count_part() {
    if (++parts_ > kMostParts)
      fail(ErrorKind::corrupt, "[{}] has more than {} parts", bytes_.name, kMostParts);
  }

  void check_depth(int depth) const {
    if (depth > kMostDepth)
      fail(ErrorKind::corrupt, "[{}] nests more than {} deep", bytes_.name, kMostDepth);
  }

  void expect(ByteReader& in, std::string_view signature) const {
    const std::string_view found = in.take_text(signature.size());
    in.require(found == signature, "expected '{}' here", signature);
  }

  void read_object(uint64_t address, const std::string& path, int depth) {
    check_depth(depth);
    const Hdf5Object object = read_header(address, path);
    if (object.tree && object.heap) {
      read_tree(*object.tree, heap_data(*object.heap), path, depth, 0);
      return;
    }
    if (!object.shape || !object.is_number || (!object.data && object.obstacle.empty())) return;
    const std::string where = fmt::format("{}: '{}'", bytes_.name, path);
    if (!object.obstacle.empty())
      fail(ErrorKind::unsupported,
           "[{}] {}, which Artel does not read; write the file again with "
           "little-endian numbers, not compressed and not in chunks",
           where, object.obstacle);
    Bytes data = *object.data;
    budget_.spend(data.data.size());
    data.name = where;
    tensors_.push_back({path, tensor_over(data, *object.shape, *object.type)});
  }

  Hdf5Object read_header(uint64_t address, const std::string& path) {
    count_part();
    ByteReader in = at(address);
    const auto version = in.little<uint8_t>();
    if (version != 1)
      fail(ErrorKind::unsupported,
           "[{}] '{}' has a header of another version than 1; write the file again with "
           "libver='earliest'",
           bytes_.name, path);
    in.take(1);
    int left = in.little<uint16_t>();
    in.take(4);
    const auto size = in.little<uint32_t>();
    in.take(4);
    Hdf5Object object;
    std::vector<Bytes> blocks = {bytes_.part(in.offset(), size)};
    for (size_t i = 0; i < blocks.size(); ++i) {
      count_part();
      const Bytes block = blocks[i];
      ByteReader messages(block);
      while (left > 0 && messages.left() >= 8) {
        --left;
        // Many objects may share a header, and its blocks may overlap.
        if (++messages_ > kMostParts + bytes_.data.size() / kMessageBytes)
          fail(ErrorKind::corrupt, "[{}] has more messages than fit into it", bytes_.name);
        const auto type = static_cast<Hdf5Message>(messages.little<uint16_t>());
        const auto bytes = messages.little<uint16_t>();
        const auto flags = messages.little<uint8_t>();
        messages.take(3);
        ByteReader message(messages.take(bytes), bytes_.name);
        const bool shared = (flags & 2) != 0;  // stored elsewhere
        read_message(type, shared, message, object, blocks);
      }
    }
    return object;
  }

  void read_message(Hdf5Message type, bool shared, ByteReader& in, Hdf5Object& object,
                    std::vector<Bytes>& blocks) {
    switch (type) {
      case Hdf5Message::dataspace:
        if (!shared) object.shape = read_shape(in);
        break;
      case Hdf5Message::datatype:
        read_type(shared, in, object);
        break;
      case Hdf5Message::layout:
        read_layout(in, object);
        break;
      case Hdf5Message::filters:
        object.obstacle = "is compressed";
        break;
      case Hdf5Message::continuation: {
        const auto offset = in.little<uint64_t>();
        blocks.push_back(bytes_.part(offset, in.little<uint64_t>()));
        break;
      }
      case Hdf5Message::symbol_table:
        object.tree = in.little<uint64_t>();
        object.heap = in.little<uint64_t>();
        break;
    }
  }

  Shape read_shape(ByteReader& in) const {
    const auto version = in.little<uint8_t>();
    const auto rank = in.little<uint8_t>();
    in.require(version == 1 || version == 2, "a data space of version {}, expected 1 or 2",
               version);
    in.take(version == 1 ? 6 : 2);
    std::vector<int64_t> extents;
    for (int i = 0; i < rank; ++i) {
      const auto extent = in.little<uint64_t>();
      in.require(extent <= uint64_t{1} << 40, "an extent of {}", extent);
      extents.push_back(static_cast<int64_t>(extent));
    }
    return Shape(std::move(extents));
  }

  // Text and compound types are not tensors. Number types without a DType are an obstacle.
  static void read_type(bool shared, ByteReader& in, Hdf5Object& object) {
    const int kind = in.little<uint8_t>() & 15;
    object.is_number = !shared && (kind == 0 || kind == 1);
    if (!object.is_number) return;
    object.type = number_type(kind, in);
    if (!object.type) object.obstacle = "has numbers of another kind or order of bytes";
  }

  // Empty for number types without a DType.
  static std::optional<DType> number_type(int kind, ByteReader& in) {
    const auto bits = in.little<uint8_t>();
    in.take(2);
    const auto size = in.little<uint32_t>();
    const bool high_byte_first = (bits & 1) != 0, has_sign = (bits & 8) != 0;
    if (high_byte_first && size > 1) return std::nullopt;
    if (kind == 0) {
      if (size == 1) return has_sign ? DType::i8 : DType::u8;
      if (!has_sign) return std::nullopt;
      return size == 2   ? std::optional(DType::i16)
             : size == 4 ? std::optional(DType::i32)
             : size == 8 ? std::optional(DType::i64)
                         : std::nullopt;
    }
    const auto offset = in.little<uint16_t>(), precision = in.little<uint16_t>();
    in.take(1);
    const int exponent = in.little<uint8_t>();
    if (offset != 0 || precision != size * 8) return std::nullopt;
    if (size == 4 && exponent == 8) return DType::f32;
    if (size == 8 && exponent == 11) return DType::f64;
    if (size == 2 && exponent == 5) return DType::f16;
    return std::nullopt;
  }

  // The location of a data set's bytes, or the reason why they cannot be read.
  void read_layout(ByteReader& in, Hdf5Object& object) const {
    const auto version = in.little<uint8_t>();
    if (version != 3 && version != 4)
      fail(ErrorKind::unsupported, "[{}] a data layout of version {}, but Artel reads 3 and 4",
           bytes_.name, version);
    const auto kind = in.little<uint8_t>();
    if (kind == 0) {
      const auto size = in.little<uint16_t>();
      const std::span<const std::byte> inside = in.take(size);
      object.data = bytes_.part(static_cast<uint64_t>(inside.data() - bytes_.data.data()), size);
      return;
    }
    if (kind != 1) {
      if (object.obstacle.empty()) object.obstacle = "lies in pieces";
      return;
    }
    const auto address = in.little<uint64_t>(), size = in.little<uint64_t>();
    if (size == 0)
      object.data = bytes_.part(0, 0);
    else if (address == kNowhere)
      object.obstacle = "has never been written";
    else
      object.data = bytes_.part(address, size);
  }

  Bytes heap_data(uint64_t address) {
    count_part();
    ByteReader in = at(address);
    expect(in, "HEAP");
    in.take(4);
    const auto size = in.little<uint64_t>();
    in.take(8);
    return bytes_.part(in.little<uint64_t>(), size);
  }

  void read_tree(uint64_t address, const Bytes& heap, const std::string& path, int depth,
                 int level) {
    check_depth(level);
    count_part();
    ByteReader in = at(address);
    expect(in, "TREE");
    const auto kind = in.little<uint8_t>();
    in.require(kind == 0, "a tree of kind {}, expected 0: members of a group", kind);
    const auto height = in.little<uint8_t>();
    const auto children = in.little<uint16_t>();
    in.take(2 * 8);
    for (int i = 0; i < children; ++i) {
      in.take(8);  // the key
      const auto child = in.little<uint64_t>();
      if (height > 0)
        read_tree(child, heap, path, depth, level + 1);
      else
        read_members(child, heap, path, depth);
    }
  }

  void read_members(uint64_t address, const Bytes& heap, const std::string& path, int depth) {
    count_part();
    ByteReader in = at(address);
    expect(in, "SNOD");
    in.take(2);
    const auto members = in.little<uint16_t>();
    for (int i = 0; i < members; ++i) {
      const auto name_at = in.little<uint64_t>(), object = in.little<uint64_t>();
      in.take(4 + 4 + 16);
      if (object == kNowhere) continue;  // a symbolic link; its target has another name
      in.require(name_at < heap.data.size(), "a name at {} of a heap of {} bytes", name_at,
                 heap.data.size());
      const std::string_view rest = heap.text().substr(name_at, kLongestHdf5Name + 1);
      const size_t end = rest.find('\0');
      in.require(end != rest.npos, "a name without an end, or of more than {} bytes",
                 kLongestHdf5Name);
      const std::string name(rest.substr(0, end));
      budget_.spend(path.size() + name.size());
      read_object(object, path.empty() ? name : path + "/" + name, depth + 1);
    }
  }

  const Bytes& bytes_;
  int offset_size_ = 0, length_size_ = 0;
  uint64_t parts_ = 0, messages_ = 0;
  ByteBudget budget_;
  NamedTensors tensors_;
};

}  // namespace

bool is_hdf5(const Bytes& bytes) { return bytes.text().starts_with(kHdf5Signature); }

NamedTensors parse_hdf5(const Bytes& bytes) {
  require(is_hdf5(bytes), ErrorKind::corrupt, "[{}] offset 0: not an HDF5 file", bytes.name);
  return Hdf5Reader(bytes).read();
}

}  // namespace artel::checkpoint
