#include "artel/data/image_folder.h"

#include <algorithm>
#include <cctype>
#include <cstring>

#include "artel/base/text.h"
#include "artel/data/image.h"
#include "artel/data/resize.h"

namespace artel::data {
namespace {

namespace fs = std::filesystem;

bool is_picture(const fs::path& path) {
  std::string extension = path.extension().string();
  for (char& c : extension) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return extension == ".jpg" || extension == ".jpeg" || extension == ".png";
}

// Scales an image until it covers the square, and cuts the middle.
Image covering(const Image& image, int64_t height, int64_t width) {
  const double scale = std::max(static_cast<double>(height) / static_cast<double>(image.height),
                                static_cast<double>(width) / static_cast<double>(image.width));
  const auto scaled = [&](int64_t side, int64_t least) {
    return std::clamp(static_cast<int64_t>(static_cast<double>(side) * scale + 0.5), least,
                      kMaxSide);
  };
  Image result = resized(image, scaled(image.height, height), scaled(image.width, width));
  return window(result, (result.height - height) / 2, (result.width - width) / 2, height, width);
}

class ImageFolder : public Dataset {
 public:
  ImageFolder(const fs::path& folder, const ImageFolderOptions& options)
      : channels_(options.channels) {
    std::vector<fs::path> classes;
    for (const auto& entry : fs::directory_iterator(folder))
      if (entry.is_directory()) classes.push_back(entry.path());
    std::sort(classes.begin(), classes.end());
    for (const fs::path& path : classes) {
      layout_.class_names.push_back(path.filename().string());
      add_class(path);
    }
    layout_.classes = static_cast<int64_t>(classes.size());
    require(!files_.empty(), ErrorKind::not_found,
            "[{}] holds no pictures in sub-folders: expected CLASS/NAME.jpg or .png",
            folder.string());
    layout_.input = {channels_, options.size, options.size};
    if (options.size == 0) {
      const Picture first = decode_picture(map_file(files_[0].path), channels_);
      layout_.input = {channels_, first.height, first.width};
    }
  }

  int64_t size() const override { return static_cast<int64_t>(files_.size()); }
  const SampleLayout& layout() const override { return layout_; }

  void read(int64_t index, std::span<std::byte> input, std::span<std::byte> target) const override {
    const File& file = files_[index];
    const int64_t height = layout_.input[1], width = layout_.input[2];
    const Image decoded =
        to_image(decode_picture(map_file(file.path), channels_, std::max(height, width)));
    const Image image = covering(decoded, height, width);
    std::memcpy(input.data(), image.pixels.data(), input.size());
    std::memcpy(target.data(), &file.label, target.size());
  }

 private:
  struct File {
    fs::path path;
    int32_t label;
  };

  void add_class(const fs::path& folder) {
    const auto label = static_cast<int32_t>(layout_.class_names.size()) - 1;
    const size_t first = files_.size();
    for (const auto& entry : fs::recursive_directory_iterator(folder))
      if (entry.is_regular_file() && is_picture(entry.path()))
        files_.push_back({entry.path(), label});
    std::sort(files_.begin() + static_cast<std::ptrdiff_t>(first), files_.end(),
              [](const File& a, const File& b) { return a.path < b.path; });
  }

  int channels_;
  std::vector<File> files_;
  SampleLayout layout_;
};

}  // namespace

DatasetPtr image_folder(const fs::path& folder, const ImageFolderOptions& options) {
  require(fs::is_directory(folder), ErrorKind::not_found, "[{}] is not a folder", folder.string());
  return std::make_shared<ImageFolder>(folder, options);
}

Split image_folders(const fs::path& folder, ImageFolderOptions options) {
  const DatasetPtr train = image_folder(folder / "train", options);
  if (options.size == 0) options.size = train->layout().input[1];
  for (const char* name : {"test", "val", "valid", "validation"}) {
    if (!fs::is_directory(folder / name)) continue;
    const DatasetPtr test = image_folder(folder / name, options);
    require(test->layout().class_names == train->layout().class_names, ErrorKind::corrupt,
            "[{}] has the classes {}, but train has {}", (folder / name).string(),
            join(test->layout().class_names, ", "), join(train->layout().class_names, ", "));
    return {train, test};
  }
  fail(ErrorKind::not_found, "[{}] has a folder train, but none called test, val or valid",
       folder.string());
}

}  // namespace artel::data
