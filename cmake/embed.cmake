# cmake -DOUT=FILE -DFOLDER=DIR -P embed.cmake: writes a C++ source with the files of DIR as constants,
# for artel/dashboard/assets.h.
file(GLOB files RELATIVE ${FOLDER} ${FOLDER}/*)
set(text "#include \"artel/dashboard/assets.h\"\n\nnamespace artel::dashboard {\nnamespace {\n\n")
set(entries "")
foreach(name ${files})
  string(MAKE_C_IDENTIFIER ${name} symbol)
  file(READ ${FOLDER}/${name} bytes HEX)
  string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
  string(APPEND text "constexpr unsigned char k_${symbol}[] = {${bytes}0};\n")
  string(APPEND entries "  if (name == \"${name}\")\n    return {reinterpret_cast<const char*>(k_${symbol}), sizeof k_${symbol} - 1};\n")
endforeach()
string(APPEND text "\n}  // namespace\n\nstd::string_view asset(std::string_view name) {\n${entries}  return {};\n}\n\n}  // namespace artel::dashboard\n")
file(WRITE ${OUT} "${text}")
