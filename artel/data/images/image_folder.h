// A folder of pictures with one subfolder per class.
#pragma once

#include <filesystem>
#include <vector>

#include "artel/data/dataset.h"

namespace artel::data {

struct ImageFolderOptions {
  // Side of the square images. Pictures are scaled until they cover it and cropped to the centre. 0
  // means the size of the pictures or, if sizes differ, the median of their shorter sides, at most
  // 224, which is logged.
  int64_t size = 0;
  int channels = 3;  // 1 or 3
  // Skips pictures that cannot be decoded, and logs their number and names. Decodes all pictures
  // once to find them. Otherwise truncated pictures are refused at the start, and other damaged
  // ones when they are read.
  bool skip_broken = false;
};

// The pictures in a folder and its subfolders, sorted by name, without hidden ones.
std::vector<std::filesystem::path> pictures_in(const std::filesystem::path& folder);

// The pictures (.jpg, .jpeg, .png) below each subfolder, with classes and files ordered by name.
// Skips hidden files and folders, and folders without pictures. Pictures are decoded when read, so
// the set may be larger than memory. With size 0, all headers are read at the start.
DatasetPtr image_folder(const std::filesystem::path& folder,
                        const ImageFolderOptions& options = {});

// Reads the subfolders `train` and `test` (or `val`, `valid`, `validation`), each as above. `train`
// determines the classes and the size. Throws if the test part has other classes.
Split image_folders(const std::filesystem::path& folder, const ImageFolderOptions& options = {});

}  // namespace artel::data
