#include "artel/data/sets.h"

#include "artel/data/idx.h"

namespace artel::data {

Split mnist(const std::filesystem::path& folder) {
  return idx_images(folder, {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"});
}

Split fashion_mnist(const std::filesystem::path& folder) {
  return idx_images(folder, {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal",
                             "Shirt", "Sneaker", "Bag", "Ankle boot"});
}

Split kmnist(const std::filesystem::path& folder) {
  return idx_images(folder, {"o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo"});
}

}  // namespace artel::data
