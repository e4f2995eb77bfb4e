#include "artel/data/images/image_folder.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <fstream>

#include "artel/base/log.h"
#include "artel/base/text.h"
#include "artel/base/thread_pool.h"
#include "artel/data/cores.h"
#include "artel/data/images/image.h"

namespace artel::data {
namespace {

namespace fs = std::filesystem;

bool is_hidden(const fs::path& path) { return path.filename().string().starts_with('.'); }

bool is_picture(const fs::path& path) {
  std::string extension = path.extension().string();
  for (char& c : extension) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return !is_hidden(path) && (extension == ".jpg" || extension == ".jpeg" || extension == ".png");
}

// The side of square images that pictures of different sizes become: that of most published
// networks, or less if the pictures are smaller.
int64_t fitting_side(std::vector<PictureSize> sizes) {
  constexpr int64_t kMost = 224;
  const auto side = [](const PictureSize& size) { return std::min(size.height, size.width); };
  const auto middle = sizes.begin() + std::ssize(sizes) / 2;
  std::nth_element(sizes.begin(), middle, sizes.end(),
                   [&](const auto& a, const auto& b) { return side(a) < side(b); });
  return std::min(kMost, side(*middle));
}

// True if a JPEG or PNG file has its end marker within the last few bytes.
bool has_end_marker(const fs::path& path) {
  constexpr std::streamoff kTail = 4096;
  if (!fs::is_regular_file(path)) return true;  // the reader refuses it
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return true;  // the reader reports why
  const std::streamoff size = file.tellg(), length = std::min(size, kTail);
  std::string first(static_cast<size_t>(std::min<std::streamoff>(size, 2)), '\0');
  std::string end(static_cast<size_t>(length), '\0');
  file.seekg(0);
  file.read(first.data(), static_cast<std::streamsize>(first.size()));
  file.seekg(size - length);
  file.read(end.data(), length);
  if (first == "\xff\xd8") return end.find("\xff\xd9") != end.npos;
  if (first == "\x89P") return end.find("IEND") != end.npos;
  return true;  // another format, which the reader refuses
}

// Some cameras append more bytes than the quick check reads; such a picture still decodes.
bool is_cut_off(const fs::path& path) {
  if (has_end_marker(path)) return false;
  try {
    decode_picture(map_file(path), 0, 1);
    return false;
  } catch (const Error&) {
    return true;
  }
}

class ImageFolder : public Dataset {
 public:
  // Takes the classes and, unless the options set it, the size from `like`, or else from the
  // folder.
  ImageFolder(const fs::path& folder, const ImageFolderOptions& options, const SampleLayout* like) {
    std::vector<std::string> classes;
    if (like) classes = like->class_names;
    std::vector<fs::path> folders;
    for (const auto& entry : fs::directory_iterator(folder))
      if (entry.is_directory() && !is_hidden(entry.path())) folders.push_back(entry.path());
    std::sort(folders.begin(), folders.end());
    for (const fs::path& path : folders) {
      const std::vector<fs::path> pictures = pictures_in(path);
      if (pictures.empty()) continue;
      const std::string name = path.filename().string();
      if (!like) classes.push_back(name);
      const auto place = std::find(classes.begin(), classes.end(), name);
      require(place != classes.end(), ErrorKind::corrupt,
              "[{}] got the class '{}', expected one of those for training: {}", folder.string(),
              name, join(classes, ", "));
      for (const fs::path& picture : pictures)
        files_.push_back({picture, static_cast<int32_t>(place - classes.begin())});
    }
    require(!files_.empty(), ErrorKind::not_found,
            "[{}] holds no pictures in sub-folders: expected CLASS/NAME.jpg or .png",
            folder.string());
    if (options.skip_broken)
      leave_out_broken(folder);
    else
      refuse_cut_off(folder);
    layout_.classes = static_cast<int64_t>(classes.size());
    layout_.class_names = std::move(classes);
    if (options.size > 0)
      layout_.input = {options.channels, options.size, options.size};
    else if (like)
      layout_.input = like->input;
    else
      layout_.input = input_of_pictures(folder, options.channels);
  }

  std::string name(int64_t index) const override { return files_[index].path.string(); }
  int64_t size() const override { return static_cast<int64_t>(files_.size()); }
  const SampleLayout& layout() const override { return layout_; }

  void read_target(int64_t index, std::span<std::byte> target) const override {
    std::memcpy(target.data(), &files_[index].label, target.size());
  }
  void read(int64_t index, std::span<std::byte> input, std::span<std::byte> target) const override {
    const File& file = files_[index];
    const Image image = read_picture(map_file(file.path), layout_.input);
    std::memcpy(input.data(), image.pixels.data(), input.size());
    read_target(index, target);
  }

 private:
  struct File {
    fs::path path;
    int32_t label;
  };

  void leave_out_broken(const fs::path& folder) {
    std::vector<std::string> problems(files_.size());
    ThreadPool pool(all_cores());
    parallel_for(pool, std::ssize(files_), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        try {
          decode_picture(map_file(files_[i].path), 0, 1);
        } catch (const Error& error) {
          problems[i] = error.what();
        }
      }
    });
    const auto broken = [&](const File& file) { return !problems[&file - files_.data()].empty(); };
    std::vector<File> good;
    for (const File& file : files_)
      if (!broken(file)) good.push_back(file);
    const size_t count = files_.size() - good.size();
    if (count == 0) return;
    constexpr size_t kNamed = 5;
    std::erase(problems, "");
    const bool more = problems.size() > kNamed;
    if (more) problems.resize(kNamed);
    require(!good.empty(), ErrorKind::corrupt, "[{}] none of {} pictures can be read: {}{}",
            folder.string(), count, join(problems, "; "), more ? "; ..." : "");
    log(LogLevel::warning, "[{}] {} of {} pictures cannot be read and {} left out: {}{}",
        folder.string(), format_count(static_cast<int64_t>(count)),
        format_count(static_cast<int64_t>(files_.size())), count == 1 ? "is" : "are",
        join(problems, "; "), more ? "; ..." : "");
    files_ = std::move(good);
  }

  // A picture that is not whole would otherwise be found in the middle of the training.
  void refuse_cut_off(const fs::path& folder) const {
    constexpr size_t kNamed = 5;
    std::vector<std::string> names;
    size_t count = 0;
    for (const File& file : files_)
      if (is_cut_off(file.path) && ++count <= kNamed) names.push_back(file.path.string());
    require(count == 0, ErrorKind::corrupt,
            "[{}] {} of {} pictures {} cut off: {}{}; delete them, save them again, or set "
            "data.skip_broken = true",
            folder.string(), format_count(static_cast<int64_t>(count)),
            format_count(static_cast<int64_t>(files_.size())), count == 1 ? "is" : "are",
            join(names, ", "), count > kNamed ? ", ..." : "");
  }

  Shape input_of_pictures(const fs::path& folder, int channels) const {
    std::vector<PictureSize> sizes;
    for (const File& file : files_) sizes.push_back(picture_size(map_file(file.path)));
    const PictureSize first = sizes.front();
    const auto other = std::find_if(sizes.begin(), sizes.end(),
                                    [&](const PictureSize& size) { return !(size == first); });
    if (other == sizes.end()) return {channels, first.height, first.width};
    const fs::path& file = files_[static_cast<size_t>(other - sizes.begin())].path;
    const int64_t side = fitting_side(sizes);
    log(LogLevel::info,
        "[{}] pictures differ in size ({} is {} x {}, {} is {} x {}): they are scaled to cover {} "
        "x {} and cut in the middle; data.image_size sets another size",
        folder.string(), files_[0].path.filename().string(), first.width, first.height,
        file.filename().string(), other->width, other->height, side, side);
    return {channels, side, side};
  }

  std::vector<File> files_;
  SampleLayout layout_;
};

DatasetPtr open_folder(const fs::path& folder, const ImageFolderOptions& options,
                       const SampleLayout* like = nullptr) {
  require(fs::is_directory(folder), ErrorKind::not_found, "[{}] is not a folder", folder.string());
  return std::make_shared<ImageFolder>(folder, options, like);
}

}  // namespace

std::vector<fs::path> pictures_in(const fs::path& folder) {
  std::vector<fs::path> pictures;
  for (auto at = fs::recursive_directory_iterator(folder); at != fs::end(at); ++at) {
    if (at->is_directory() && is_hidden(at->path()))
      at.disable_recursion_pending();
    else if (at->is_regular_file() && is_picture(at->path()))
      pictures.push_back(at->path());
  }
  std::sort(pictures.begin(), pictures.end());
  return pictures;
}

DatasetPtr image_folder(const fs::path& folder, const ImageFolderOptions& options) {
  return open_folder(folder, options);
}

Split image_folders(const fs::path& folder, const ImageFolderOptions& options) {
  const DatasetPtr train = image_folder(folder / "train", options);
  for (const char* name : {"test", "val", "valid", "validation"})
    if (fs::is_directory(folder / name))
      return {train, open_folder(folder / name, options, &train->layout())};
  fail(ErrorKind::not_found, "[{}] has a folder train, but none called test, val or valid",
       folder.string());
}

}  // namespace artel::data
