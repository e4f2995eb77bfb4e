#include "artel/data/image_folder.h"

#include <algorithm>
#include <cctype>
#include <cstring>

#include "artel/base/text.h"
#include "artel/data/image.h"

namespace artel::data {
namespace {

namespace fs = std::filesystem;

bool is_hidden(const fs::path& path) { return path.filename().string().starts_with('.'); }

bool is_picture(const fs::path& path) {
  std::string extension = path.extension().string();
  for (char& c : extension) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return !is_hidden(path) && (extension == ".jpg" || extension == ".jpeg" || extension == ".png");
}

// All below a folder, by name.
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

class ImageFolder : public Dataset {
 public:
  // Without `classes` they are those of the folder.
  ImageFolder(const fs::path& folder, const ImageFolderOptions& options,
              std::vector<std::string> classes) {
    const bool found_here = classes.empty();
    std::vector<fs::path> folders;
    for (const auto& entry : fs::directory_iterator(folder))
      if (entry.is_directory() && !is_hidden(entry.path())) folders.push_back(entry.path());
    std::sort(folders.begin(), folders.end());
    for (const fs::path& path : folders) {
      const std::vector<fs::path> pictures = pictures_in(path);
      if (pictures.empty()) continue;
      const std::string name = path.filename().string();
      if (found_here) classes.push_back(name);
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
    layout_.classes = static_cast<int64_t>(classes.size());
    layout_.class_names = std::move(classes);
    layout_.input = {options.channels, options.size, options.size};
    if (options.size == 0) {
      const PictureSize size = common_size();
      layout_.input = {options.channels, size.height, size.width};
    }
  }

  int64_t size() const override { return static_cast<int64_t>(files_.size()); }
  const SampleLayout& layout() const override { return layout_; }

  void read(int64_t index, std::span<std::byte> input, std::span<std::byte> target) const override {
    const File& file = files_[index];
    const Image image = read_picture(map_file(file.path), layout_.input);
    std::memcpy(input.data(), image.pixels.data(), input.size());
    std::memcpy(target.data(), &file.label, target.size());
  }

 private:
  struct File {
    fs::path path;
    int32_t label;
  };

  PictureSize common_size() const {
    const PictureSize first = picture_size(map_file(files_[0].path));
    for (const File& file : files_) {
      const PictureSize size = picture_size(map_file(file.path));
      require(size == first, ErrorKind::corrupt,
              "[{}] a picture of {} x {}, expected {} x {} like [{}]; give one size for all as "
              "data.image_size",
              file.path.string(), size.width, size.height, first.width, first.height,
              files_[0].path.string());
    }
    return first;
  }

  std::vector<File> files_;
  SampleLayout layout_;
};

DatasetPtr open_folder(const fs::path& folder, const ImageFolderOptions& options,
                       std::vector<std::string> classes = {}) {
  require(fs::is_directory(folder), ErrorKind::not_found, "[{}] is not a folder", folder.string());
  return std::make_shared<ImageFolder>(folder, options, std::move(classes));
}

}  // namespace

DatasetPtr image_folder(const fs::path& folder, const ImageFolderOptions& options) {
  return open_folder(folder, options);
}

Split image_folders(const fs::path& folder, const ImageFolderOptions& options) {
  const DatasetPtr train = image_folder(folder / "train", options);
  for (const char* name : {"test", "val", "valid", "validation"})
    if (fs::is_directory(folder / name))
      return {train, open_folder(folder / name, options, train->layout().class_names)};
  fail(ErrorKind::not_found, "[{}] has a folder train, but none called test, val or valid",
       folder.string());
}

}  // namespace artel::data
