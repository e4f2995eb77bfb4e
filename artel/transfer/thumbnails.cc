#include <algorithm>
#include <cmath>

#include "artel/base/base64.h"
#include "artel/base/bytes.h"
#include "artel/base/error.h"
#include "artel/data/images/image.h"
#include "artel/data/images/resize.h"
#include "artel/transfer/picture_search.h"

namespace artel::transfer {
namespace {

constexpr const char* kPageStyle =
    "body{font:15px system-ui,sans-serif;margin:24px;color:#222;background:#fff}"
    "section{margin:0 0 28px}h2{font-size:17px;margin:0 0 8px}"
    "div{display:flex;flex-wrap:wrap;gap:10px}figure{margin:0;text-align:center;font-size:12px;"
    "color:#555;max-width:160px;overflow-wrap:anywhere}img{border-radius:6px;display:block;"
    "margin:0 auto 4px}@media(prefers-color-scheme:dark){body{background:#111;color:#ddd}"
    "figure{color:#aaa}}";

std::string escaped_html(const std::string& text) {
  std::string result;
  for (const char letter : text) {
    if (letter == '&')
      result += "&amp;";
    else if (letter == '<')
      result += "&lt;";
    else if (letter == '>')
      result += "&gt;";
    else if (letter == '"')
      result += "&quot;";
    else
      result += letter;
  }
  return result;
}

// Scales a colour picture such that its longer side is `side`.
data::Picture thumbnail(const std::filesystem::path& file, int64_t side) {
  const data::Picture picture = data::decode_picture(map_file(file), 3, side);
  const double scale =
      static_cast<double>(side) / static_cast<double>(std::max(picture.height, picture.width));
  const auto scaled = [&](int64_t extent) {
    return std::max<int64_t>(1, std::llround(scale * static_cast<double>(extent)));
  };
  const data::Image small =
      data::resized(data::to_image(picture), scaled(picture.height), scaled(picture.width));
  data::Picture result{small.height, small.width, 3, {}};
  result.samples.resize(static_cast<size_t>(small.height * small.width * 3));
  for (int64_t c = 0; c < 3; ++c)
    for (int64_t i = 0; i < small.height * small.width; ++i)
      result.samples[i * 3 + c] = static_cast<uint8_t>(std::lround(
          255 * std::clamp(small.pixels[c * small.height * small.width + i], 0.0f, 1.0f)));
  return result;
}

}  // namespace

std::string thumbnail_page(const std::string& title, const std::vector<ThumbnailSection>& sections,
                           int64_t side) {
  std::string page = fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>{0}</title>\n"
      "<style>{1}</style>\n<h1>{0}</h1>\n",
      escaped_html(title), kPageStyle);
  for (const ThumbnailSection& section : sections) {
    page += fmt::format("<section><h2>{}</h2><div>\n", escaped_html(section.title));
    for (size_t i = 0; i < section.files.size(); ++i) {
      const data::Picture small = thumbnail(section.files[i], side);
      page += fmt::format(
          "<figure><a href=\"{}\"><img width=\"{}\" height=\"{}\" alt=\"\" "
          "src=\"data:image/png;base64,{}\"></a>{}</figure>\n",
          escaped_html(std::filesystem::absolute(section.files[i]).string()), small.width,
          small.height, base64(data::encode_png(small)), escaped_html(section.captions[i]));
    }
    page += "</div></section>\n";
  }
  return page + "</html>\n";
}

}  // namespace artel::transfer
