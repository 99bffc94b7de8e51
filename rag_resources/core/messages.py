"""Everything a user of the product reads, in Spanish, in one catalogue.

A message is a template: `Message.PORT_TAKEN.format(port=5432)`. Logs and code are English and do
not belong here.
"""


class Message:
    """The catalogue, by area; each value is a `str.format` template."""

    # Retrieval: degraded service
    SEMANTIC_UNAVAILABLE = "Búsqueda semántica no disponible, usando búsqueda por palabras clave"
    FULLTEXT_UNAVAILABLE = "Búsqueda por palabras clave no disponible, usando búsqueda semántica"
    NOTHING_RETRIEVED = "No se pudieron recuperar resultados. Por favor, intenta de nuevo."
    CONNECTION_ERROR = "Error de conexión. Por favor, intenta de nuevo más tarde."
    PARTIAL_RESULTS = "Búsqueda parcial completada (tiempo límite excedido)"
    CONFIGURATION_FALLBACK = "Configuración inválida, usando valores predeterminados"

    DEPENDENCY_OPEN = "«{dependency}» ha fallado varias veces seguidas; se volverá a probar en menos de {seconds} s."
    STATEMENT_CANCELLED = "La base de datos ha interrumpido una operación que tardaba demasiado. Mira su carga y repite."
    TIME_IS_UP = "No queda tiempo para esta parte de la búsqueda."

    # Configuration
    INVALID_CONFIGURATION = "La configuración no es válida ({origin}):"
    ORIGIN_OVERRIDES = "valores indicados en la llamada"
    INVALID_CONFIGURATIONS = "Hay configuraciones de recuperación no válidas:"
    CONFIGURATION_FOLDER = "{path}: la carpeta de configuraciones no existe (RAG_CONFIGURATIONS)"
    CONFIGURATION_NOT_FOUND = (
        "No existe ninguna configuración llamada «{name}». Las que hay son: {known}."
    )
    CONFIGURATION_DUPLICATE = "La configuración «{name}» está en dos ficheros: {first} y {second}."
    CONFIGURATION_NAME = "name: debe coincidir con el nombre del fichero («{stem}»), no «{name}»"
    CONFIGURATION_YAML = "no es YAML válido, o no se puede leer (línea {line}, columna {column})"
    YAML_LIMITS = (
        "un valor no encaja con su etiqueta, es demasiado largo o tiene demasiados niveles"
    )
    CONFIGURATION_MODEL = (
        "retrieval.model: el modelo «{model}» no está entre los configurados ({known})"
    )
    OVERLAP_TOO_LARGE = "overlap_tokens debe ser menor que max_tokens"
    MINIMUM_TOO_LARGE = "min_tokens debe ser menor que max_tokens"
    ALL_WEIGHTS_ZERO = "si fulltext_weight es 0, ni semantic_weight ni los valores de semantic_weights pueden serlo"
    FINAL_OVER_RETRIEVAL = "top_k.final no puede ser mayor que top_k.retrieval"
    PROBLEM_MISSING = "falta este campo"
    PROBLEM_UNKNOWN_KEY = "clave desconocida; revisa si está bien escrita"
    PROBLEM_TOO_SMALL = "{value} es menor que el mínimo, {ge}"
    PROBLEM_TOO_LARGE = "{value} es mayor que el máximo, {le}"
    PROBLEM_NOT_OVER = "{value} debe ser mayor que {gt}"
    PROBLEM_NOT_UNDER = "{value} debe ser menor que {lt}"
    PROBLEM_PATTERN = "«{value}» solo puede tener minúsculas sin acento, cifras y _"
    PROBLEM_EMPTY = "no puede estar vacío"
    PROBLEM_CHOICE = "«{value}» no es una de las opciones: {expected}"
    PROBLEM_INTEGER = "«{value}» no es un número entero"
    PROBLEM_HUGE = "«{value}» es un número demasiado grande"
    PROBLEM_NUMBER = "«{value}» no es un número"
    PROBLEM_BOOLEAN = "«{value}» no es true ni false"
    PROBLEM_TEXT = "«{value}» no es un texto"
    PROBLEM_UNICODE = "«{value}» no es texto Unicode válido"
    PROBLEM_TOO_LONG = "tiene más de {max_length} caracteres"
    PROBLEM_TOO_MANY = "tiene más de {max_length} valores"
    PROBLEM_UUID = "«{value}» no es un identificador (UUID)"
    PROBLEM_DATE = (
        "«{value}» no es una fecha; escríbela así: 2025-03-14 o 2025-03-14T18:30:00+01:00"
    )
    PROBLEM_MAPPING = "se esperaba un grupo de campos, no «{value}»"
    PROBLEM_LIST = "se esperaba una lista, no «{value}»"
    PROBLEM_TOO_DEEP = "un valor tiene demasiados niveles"
    PROBLEM_OTHER = "valor no válido: «{value}» ({kind})"

    # Settings
    INVALID_SETTINGS = "Hay variables de entorno con valores no válidos:"
    SETTINGS_MONTH = "debe ser un mes con la forma AAAA-MM, como 2024-11"
    SETTINGS_HOME = "no se conoce la carpeta personal de {path}"
    SETTINGS_JSON = "{group}: no es JSON válido; es más fácil dar cada campo en su variable, como {group}__{field}"
    HOME_NOT_WRITABLE = "No se puede escribir en {path} (RAG_HOME). Da permiso de escritura o elige otra carpeta con RAG_HOME."

    # Indexing
    BLANK_NOTE = "La nota está en blanco."
    CHUNKS_NOT_STORED = "No se guardaron todos los fragmentos de la nota."
    IN_OTHER_HANDS = "Otra ejecución tiene entre manos lo que falta ({count}) y no avanza. Comprueba si sigue viva y, cuando acabe, repite esta."
    MODEL_CHANGED = "El modelo «{model}» tiene otros pesos u otra dimensión que cuando se registró. Dale otro nombre para reindexar con él mientras el anterior sigue sirviendo."
    CONTEXT_PART = "Parte {part} de {parts} de una nota sobre: {summary}."
    CONTEXT_PREVIOUS = "Antes: {topic}."
    CONTEXT_NEXT = "Después: {topic}."
    CONTEXT_FIRST = "Sección inicial."
    CONTEXT_MIDDLE = "Sección intermedia."
    CONTEXT_LAST = "Sección final."

    # Ingestion
    SOURCE_MISSING = (
        "No existe la carpeta o el fichero de notas {path}. Comprueba que la ruta está bien"
        " escrita."
    )
    SOURCE_UNREADABLE = (
        "No se puede leer {path}. Comprueba la ruta y da permiso de lectura, y de entrada si es una"
        " carpeta."
    )
    SOURCE_UNSUPPORTED = (
        "No se pueden leer notas de {path}. Indica una carpeta o un fichero de uno de estos tipos:"
        " {suffixes}."
    )
    SOURCE_PARAMETER = "{name} debe ser al menos {minimum}: {value}."
    RECORD_UNREADABLE = (
        "No se puede leer. Comprueba que existe, que no es un enlace roto y que hay permiso de"
        " lectura."
    )
    RECORD_FILE_NAME = "El nombre no está en UTF-8. Cambia el nombre del fichero."
    RECORD_FILE_DATE = (
        "La fecha de modificación del fichero no es válida. Corrígela, por ejemplo con «touch»."
    )
    RECORD_NOT_UTF8 = (
        "No está en UTF-8: byte no válido en la posición {offset} (línea {line}). Si el texto está en"
        " Latin-1, conviértelo con «iconv -f latin1 -t utf-8»."
    )
    RECORD_TOO_LARGE = "La nota ocupa más de {megabytes} MB, el máximo. Divídela en varias."
    RECORD_BLANK = "{field}: el contenido está en blanco."
    RECORD_NO_CONTENT = "content: falta el contenido; ponlo en uno de estos campos: {known}."
    RECORD_NOT_TEXT = "{field}: debe ser un texto, no «{value}»."
    RECORD_SURROGATE = (
        "{field}: contiene medio carácter suelto ({code}), que no es texto Unicode válido."
    )
    RECORD_FIELD_TOO_DEEP = "{field}: tiene demasiados valores o demasiados niveles."
    RECORD_FIELD_VALUE = "{field}: no se puede guardar un valor de tipo {value}."
    RECORD_ID = "{field}: debe ser un texto o un número entero, no «{value}». Ponlo entre comillas."
    RECORD_ID_LENGTH = "{field}: el identificador ocupa más de {maximum} bytes."
    RECORD_CREATED_AT = (
        "{field}: «{value}» no es una fecha. Escríbela así: 2025-03-14 o 2025-03-14T18:30:00+01:00."
    )
    RECORD_TAGS = "{field}: debe ser una lista de textos o un texto con comas, no «{value}»."
    RECORD_TAG_LENGTH = "{field}: la etiqueta «{value}» es demasiado larga."
    RECORD_DUPLICATE = "id: «{external_id}» ya está en {first}. Cambia uno de los dos."
    RECORD_JSON = "No es JSON válido (línea {line}, columna {column})."
    RECORD_JSON_LIMITS = "No se puede leer el JSON: demasiados niveles o un número demasiado largo."
    RECORD_NOT_AN_OBJECT = "La línea no es un objeto JSON: faltan los campos, entre llaves."
    FRONT_MATTER_YAML = (
        "La cabecera entre «---» no es YAML válido (línea {line}). Si un valor lleva «: » o"
        " comillas, ponlo entre comillas."
    )
    FRONT_MATTER_NOT_MAPPING = (
        "La cabecera entre «---» debe tener líneas de la forma «campo: valor»."
    )
    FRONT_MATTER_TOO_LONG = "La cabecera entre «---» tiene más de {maximum} caracteres."
    CSV_NO_CONTENT = (
        "La cabecera no tiene ninguna columna de contenido ({known}); tiene estas: {found}."
    )
    CSV_REPEATED_COLUMN = "La columna «{column}» está repetida en la cabecera."
    CSV_FIELDS = "La fila tiene {found} campos y la cabecera {expected}."
    CSV_MALFORMED = (
        "De la línea {first} a la {last} no es CSV válido: hay unas comillas mal cerradas o un campo"
        " de más de {megabytes} MB."
    )
    SQUAD_SHAPE = (
        "El JSON no tiene la forma de SQuAD (data, paragraphs, context). Si son notas, usa JSONL: un"
        " objeto por línea y extensión .jsonl."
    )
    SQUAD_FIELD = "{field}: falta o no es del tipo que pide SQuAD."
    SQUAD_NO_ANSWER = "{field}: la pregunta no tiene respuesta."
    SQUAD_ANSWER_OFFSET = "{field}: la respuesta «{answer}» no está donde dice answer_start."

    # Questions and results
    MODEL_NOT_INDEXED = "No hay nada indexado con el modelo «{model}», o se retiró. Materializa el activo embeddings/{model} (si no existe, añade antes el modelo a EMBEDDING_MODELS y reinicia) o elige otra configuración."
    EMBEDDING_DIMENSION = (
        "El modelo «{model}» da vectores de {found} componentes y los guardados tienen {expected}."
    )
    QUERY_BLANK = "La pregunta está vacía. Escribe qué quieres buscar."
    QUERY_TOO_LONG = "La pregunta tiene {length} caracteres; el máximo es {maximum}."
    FUSION_WEIGHTS = "Debe haber un peso entre 0 y 1 por lista, no todos 0: {weights}."
    FUSION_RANK_CONSTANT = "La constante de rango debe ser al menos 1: {value}."

    TOP_K_RANGE = "El número de pasajes debe estar entre 1 y {maximum}: {value}."
    INVALID_FILTERS = "Los filtros no son válidos:"
    FILTER_EMPTY_PERIOD = "created_from debe ser anterior a created_until"
    FILTER_NUL = "tiene el carácter NUL, que ninguna nota puede tener"
    FILTER_OUTSIDE_CALENDAR = "en UTC queda fuera de los años 1 a 9999"
    FILTER_METADATA_VALUE = (
        "debe ser un texto de hasta {max_length} caracteres, un número, true, false o null"
    )

    # Golden dataset
    GOLDEN_INVALID = "El conjunto de preguntas no es válido ({origin}); no se ha importado nada:"
    GOLDEN_ENTRY = "entrada {position} («{query}»): {reason}"
    GOLDEN_ENTRY_UNNAMED = "entrada {position}: {reason}"
    GOLDEN_DUPLICATE = "la pregunta ya está en la entrada {first}"
    GOLDEN_DUPLICATE_ID = "id: es el mismo que el de la entrada {first}"
    GOLDEN_REPEATED = "la pregunta ya está en el conjunto ({golden_id})"
    GOLDEN_CANDIDATE = "tags: la etiqueta «{tag}» dice que nadie la ha revisado; decide qué notas responden y bórrala"
    GOLDEN_ENTRY_INVALID = "La pregunta no es válida; no se ha cambiado nada:"
    GOLDEN_ID_UNKNOWN = "Ninguna pregunta tiene un identificador que empiece por «{prefix}». Míralos con «rag golden list»."
    GOLDEN_ID_AMBIGUOUS = (
        "Hay {count} preguntas con un identificador que empieza por «{prefix}». Escribe más cifras."
    )
    GOLDEN_NOTHING_TO_CHANGE = "No se ha indicado ningún cambio. Si la pregunta sigue siendo válida tal como está, dilo con --reviewed."
    GOLDEN_STDIN_JSON = "Lo que llega por la entrada estándar no es un objeto JSON."
    GOLDEN_STDIN_ALONE = (
        "Con --stdin, todos los campos van en el JSON: no des además opciones de campos."
    )
    GOLDEN_DELETE_UNCONFIRMED = "No se ha borrado nada. Para borrar sin preguntar, añade --yes."
    GOLDEN_NO_HISTORY = "El historial no tiene el conjunto de «{moment}». Da un número de versión o un hash de los que muestra «rag golden history», o una fecha desde la primera versión, como 2025-03-14T18:30."
    GOLDEN_QUERY_BYTES = "query: la pregunta ocupa más de {maximum} bytes"
    GOLDEN_BLANK_QUERY = "query: falta la pregunta"
    GOLDEN_NO_RELEVANT = "relevantNoteIds: hace falta al menos una nota relevante"
    GOLDEN_MISSING_NOTE = "la nota relevante «{note}» no existe"
    GOLDEN_NO_ANSWER = "expectedAnswer: falta la respuesta esperada"
    GOLDEN_CATEGORY = "category: «{value}» no es una de {known}"
    GOLDEN_DIFFICULTY = "difficulty: {value} no es un entero de 1 a 5"
    GOLDEN_FIELD = "{field}: valor no válido («{value}»)"
    GOLDEN_UNSTORABLE = "{field}: tiene un carácter que no se puede guardar (NUL o medio carácter)"
    GOLDEN_NOT_A_LIST = "se esperaba una lista «entries» de preguntas"
    GOLDEN_NOT_AN_OBJECT = "no es un objeto JSON"
    GOLDEN_JSON = "no es JSON válido (línea {line}, columna {column})"
    GOLDEN_JSON_LINES = "tiene un objeto por línea (JSONL), y se espera uno solo: pon los objetos en una lista, entre corchetes y separados por comas"
    GOLDEN_JSON_LIMITS = "no se puede leer el JSON: demasiados niveles o un número demasiado largo"
    GOLDEN_NO_TEXT = "el fichero está vacío"
    FILE_NOT_READABLE = "No se puede leer {path}: no existe, no tienes permiso o no es texto UTF-8."
    FILE_NOT_WRITABLE = (
        "No se puede escribir {path}: comprueba la carpeta, los permisos y el espacio libre."
    )
    GOLDEN_EMPTY = (
        "El conjunto de preguntas está vacío, así que no hay nada que evaluar. "
        "Importa uno con «rag golden import FICHERO»."
    )

    # Metrics and gate
    PERCENTILE = "No hay percentil {share} de {count} valores."
    GATE_COUNTS = "No se puede juzgar {hits} aciertos de {queries} preguntas."

    # Assets and checks, as the Dagster UI shows them
    ASSET_NOTES = "Las notas de la fuente (NOTES_SOURCE), por mes de creación. Lo que no ha cambiado no se toca; lo que no se puede leer se nombra y se cuenta."
    ASSET_NOTE_EMBEDDINGS = "Un vector por nota entera: con él se encuentra una nota antes de fragmentarla, y es el punto de partida de las comparaciones."
    ASSET_CHUNKS = (
        "Las notas cortadas por frases en fragmentos con su contexto, por mes de la nota."
    )
    ASSET_EMBEDDINGS = "Vectores de los fragmentos con el modelo {model}: uno del texto y otro del texto con su contexto."
    ASSET_GOLDEN = (
        "Preguntas con sus notas relevantes: la vara con la que se mide cada configuración."
    )
    ASSET_MIGRATION_STATUS = "Cuánto se ha migrado, con qué calidad y qué falta. Se materializa después de cada lote, así que sus números se dibujan a lo largo de la migración."
    ASSET_REPORT = "Las evaluaciones como informe: una página HTML con configuraciones, historia, latencia, comparaciones y preguntas que cambian; aquí, lo principal de ella."
    ASSET_PROMOTED = "La configuración que sirve. Solo se materializa con una candidata cuya última evaluación pasa el control."
    MONTHS_UNFINISHED = "Lo que viene después de los meses no se pudo hacer: {reason}"
    MONTHS_FAILED = "Meses que no están completos: {count}. Los demás están hechos.\n{months}"
    MONTH_DONE = "{month}: terminado en {seconds:.1f} s ({counts})"
    MONTH_NOTES_FAILED = "{shown}; y {more} más"
    MONTH_PROGRESS = (
        "{month}: {done} de {total} notas, {notes_per_second} notas/s, quedan unos {remaining}"
    )
    TABLE_FAILED_NOTES = "| nota | identificador | motivo |"
    CHECK_CHUNK_INTEGRITY = (
        "Los fragmentos están numerados de 0 a N−1, caen dentro de su nota y la cubren entera."
    )
    CHECK_OUTSIDE = "Ninguna nota queda fuera de las particiones mensuales."
    OUTSIDE_NOTES = "{count} notas quedan fuera de las particiones ({first} … {last}); se encuentran, pero ningún mes las procesa: {examples}."
    OUTSIDE_EARLY = " Para incluir las anteriores, pon FIRST_MONTH={month}."
    OUTSIDE_FUTURE = " La fecha de las futuras se corrige en la tabla notes (created_at): la de la fuente solo cuenta la primera vez."
    CHECK_EMBEDDINGS_COMPLETE = (
        "Cada fragmento tiene sus dos vectores, al día y de la dimensión del modelo."
    )
    CHECK_BATCH_SINGLE = (
        "Un texto da el mismo vector solo que en un lote, y el mismo que está guardado."
    )
    CHECK_GOLDEN = "Cada pregunta es válida, no se repite, y sus notas relevantes existen."
    CHECK_GOLDEN_DRIFT = "Las preguntas siguen midiendo lo que deben: sus notas siguen ahí y no se han editado, la mezcla de categorías es la de la evaluación de lo que sirve, ninguna se repite con otras palabras parecidas, y no son todas demasiado fáciles ni alguna imposible."
    CHECK_RETRIEVAL_QUALITY = (
        "Calidad de la recuperación con este modelo tras cada lote: un punto por ejecución."
    )
    CHECK_HIT_RATE = "Hit_Rate@10 alcanza GATE__HIT_RATE_AT_10 (por defecto, 0.85) en las preguntas del conjunto; con el intervalo de Wilson al 95 %."
    CHECK_SETTLED = "Si pasa, pasa con certeza: el intervalo de Wilson al 95 % queda entero por encima del umbral."
    CHECK_LATENCY = (
        "p95 de una recuperación por debajo de GATE__LATENCY_P95_MS (por defecto, 2000 ms)."
    )
    CHECK_REGRESSION = "Nada prueba que Hit_Rate@10 sea peor que el de lo que sirve en más de GATE__MARGIN (por defecto, 2 puntos), pregunta a pregunta."
    REGRESSION_NOTHING = "No hay otra evaluación, la de lo que sirve, con la que comparar."
    REGRESSION_AGAINST = "Frente a «{name}», que sirve: {verdict}"
    GATE_DESCRIPTION = "{state}: Hit_Rate@10 = {hit_rate:.3f} (intervalo al 95 %: {low:.3f}–{high:.3f}; {queries} preguntas; umbral {threshold:g})"
    GATE_MORE_QUERIES = "; harían falta unas {more} preguntas más para confirmarlo"
    GATE_PASS = "pasa"
    GATE_INCONCLUSIVE = "pasa, sin certeza"
    GATE_FAIL = "no pasa"
    TABLE_BREAKDOWN = "| | preguntas | Hit_Rate@1 | Hit_Rate@5 | Hit_Rate@10 | MRR |"
    TABLE_PROFILE = "| etapa | veces | media ms | p50 ms | p95 ms | p99 ms |"
    PROFILE_TOTAL = "consulta completa"
    PROFILE_CACHED = "consulta completa, desde la caché"
    TABLE_DEGRADED = "| etapa que falló | consultas |"
    TABLE_CACHES = (
        "| caché (las evaluaciones no la usan) | aciertos | fallos | % de aciertos | entradas |"
    )
    TABLE_POOL = "| conexiones | en uso | en espera | pedidas | espera media ms | perdidas |"
    TABLE_RESULTS = "| # | puntuación | fecha | título | pasaje | método |"
    NO_RESULTS = "Sin resultados."
    QUALITY_WITHOUT_GOLDEN = "No hay preguntas con las que medir: materializa golden_dataset."
    BATCH_HIT_RATE = "Hit_Rate@10 = {hit_rate:.3f} con {queries} preguntas"
    BATCH_UNDER_FLOOR = "por debajo del mínimo fijado, MIGRATION_FLOOR = {floor:.3f}"
    BATCH_WORSE = "caída significativa frente a «{configuration}»: de {before:.3f} a {now:.3f} en las {compared} preguntas comunes, {lost} perdidas y {gained} ganadas (p = {p_value:.2g}; límite de esta medición: {level:.2g})"
    BATCH_NOT_WORSE = "sin caída significativa frente a «{configuration}»: de {before:.3f} a {now:.3f} en las {compared} preguntas comunes, {lost} perdidas y {gained} ganadas (p = {p_value:.2g}; límite de esta medición: {level:.2g})"
    BATCH_WITHOUT_BASELINE = (
        "sin evaluación anterior a la migración con la que comparar las mismas preguntas"
    )
    BATCH_OPEN = "El siguiente lote puede empezar"
    BATCH_CLOSED = "El siguiente lote no empezará"
    BATCH_REFUSED = 'Este lote no empieza: el control de calidad está cerrado.\n{batches}\nCorrige la causa y repite solo la comprobación retrieval_quality de cada activo indicado: si la calidad ha vuelto, abre el control. Para seguir sin eso, da el motivo en la configuración de la ejecución: ops: {{{op}: {{config: {{override_quality_gate: "…"}}}}}}'
    BATCH_REFUSED_BY = "embeddings/{model}, medido el {finished_at:%Y-%m-%d %H:%M} UTC: {reason}."
    BATCH_OVERRIDDEN = (
        "Se sigue pese al control de calidad cerrado de {models}; motivo: {override_reason}"
    )
    FIELD_OVERRIDE_QUALITY_GATE = "Motivo para seguir aunque el control de calidad esté cerrado; se guarda con el lote que lo cerró. Vacío: no se sigue."
    CHUNKS_BROKEN = "Hay notas con fragmentos incorrectos: {examples}"
    CHUNKS_SOUND = "{notes} notas comprobadas."
    EMBEDDINGS_GAPS = "{missing} fragmentos sin vector, {stale} con el de otro texto, {wrong} de otra dimensión, de {chunks}."
    BATCH_DIFFERS = "El coseno más bajo entre el vector guardado y el calculado ahora es {cosine:.5f} (mínimo: {minimum})."
    NOTHING_TO_CHECK = "No hay nada que comprobar todavía."
    GOLDEN_SOUND = "{count} preguntas válidas."
    GOLDEN_BROKEN = "Preguntas con notas que ya no existen: {examples}"
    SENSOR_NEW_NOTES = "Ingesta los meses de los ficheros nuevos o cambiados de NOTES_SOURCE."
    SENSOR_FAILED_RUNS = "Avisa en el registro de cada ejecución que falla."
    SENSOR_STOP_BACKFILLS = "Pide que se detengan los backfills en curso cuando el control de calidad de un modelo se cierra o alguien detiene la migración."
    BACKFILLS_NONE = "No hay ningún backfill en curso que pueda haber que detener."
    BACKFILLS_GO_ON = "Nada detiene los backfills en curso."
    BACKFILLS_STOPPED = "Se ha pedido detener {backfills}.\n{reasons}"
    JOB_INDEX = "Fragmenta y vectoriza las notas de los meses elegidos."
    JOB_EVALUATE = "Evalúa todas las configuraciones y las compara."
    JOB_PROMOTE = "Promueve la candidata indicada, o la mejor que pasa su control."
    PASSAGES_FOUND = "{count} pasajes en {latency_ms:.0f} ms"
    JOB_RETRIEVE = "Hace una pregunta y muestra los pasajes encontrados."
    JOB_ARCHIVE = "Pasa a ficheros comprimidos las preguntas de las evaluaciones de hace más de EVALUATION_DETAIL_DAYS días; sus medias se quedan. No toca la última de cada configuración, ni las promovidas, ni las que sirven de referencia a una migración."
    FOLDER_NOT_WRITABLE = "No se puede escribir en la carpeta {path}."
    JOB_PURGE_EXPIRED = "Borra las notas que caducaron hace más de EXPIRED_GRACE_HOURS horas, con sus fragmentos y vectores; ya no se encontraban."
    FIELD_QUESTION = "La pregunta, como la haría una persona."
    FIELD_CONFIGURATION = "Nombre de una configuración; vacío: la promovida."
    FIELD_CANDIDATE = "Nombre de una candidata; vacío: la mejor de las que pasan su control."
    FIELD_STRATEGY = "semantic, fulltext, hybrid o hybrid+rerank; vacío: la de la configuración."
    FIELD_OVERRIDES = "Campos de la configuración que cambiar, por ejemplo {fusion: {method: rrf}}."
    FIELD_FILTERS = (
        "Condiciones de las notas: source, tags, note_ids, created_from, created_until, metadata."
    )
    FIELD_TOP_K = "Cuántos pasajes; 0: los de la configuración."
    EXAMPLE_QUESTION = "¿qué pasó con la insulina durante el apagón?"
    SOURCE_UNCHANGED = "No hay ficheros nuevos ni cambiados en {path}."
    SOURCE_NOT_SET = "NOTES_SOURCE está vacío: no hay fuente que vigilar."
    RUN_FAILED = "Ha fallado la ejecución {run_id} de {job}: {error}"
    NOT_EVALUATED = "Todavía no hay ninguna evaluación guardada."
    NO_EVALUATIONS = "Todavía no hay evaluaciones."
    PAIRED_COUNTS = (
        "No se pueden comparar {lost} aciertos perdidos y {gained} ganados de {queries} preguntas."
    )
    COMPARISON_WITHOUT_QUERIES = "No hay ninguna pregunta en común que comparar."
    COMPARISON_GOLDEN_DIFFERS = (
        "Las dos evaluaciones son de conjuntos de preguntas distintos ({before} y {after}). Vuelve a "
        "evaluar la más antigua, o compara solo las preguntas que comparten con --common."
    )
    COMPARISON_ARCHIVED = (
        "Las preguntas de la evaluación {evaluation_id} ya se archivaron: solo quedan sus medias."
    )
    EVALUATION_NOT_FOUND = (
        "No hay ninguna evaluación de «{name}». Da el nombre de una configuración evaluada o el "
        "principio del identificador de una evaluación (al menos 6 caracteres)."
    )
    EVALUATION_AMBIGUOUS = (
        "Hay varias evaluaciones cuyo identificador empieza por «{name}»: escribe más caracteres."
    )
    CHANGE_MODEL_DIGEST = "huella del modelo"
    CHANGE_GOLDEN = "conjunto de preguntas"
    CHANGE_INDEX = "versión del índice"
    CHANGE_CHUNKING = "forma de fragmentar"
    HELP_COMPARE = "Compara dos evaluaciones pregunta a pregunta: cuál es mejor, cuánto, qué preguntas cambian y qué era distinto."
    HELP_COMPARE_BEFORE = "La primera: una configuración (su última evaluación) o el principio del identificador de una evaluación."
    HELP_COMPARE_AFTER = "La segunda, que se juzga frente a la primera."
    HELP_COMPARE_COMMON = "Si los conjuntos de preguntas son distintos, compara las que comparten."
    COMPARE_TITLE = "{before} → {after} (preguntas en común: {queries})"
    COMPARE_EVALUATION = "{configuration}, {created_at:%Y-%m-%d %H:%M} UTC"
    COMPARE_LEFT_OUT = "No cuentan las preguntas que no están en las dos evaluaciones, o que tienen otras notas relevantes: {count}."
    COMPARE_FLIPS = "Entre los diez primeros, preguntas perdidas: {lost}; ganadas: {gained}."
    COMPARE_FLIPS_SHOWN = "Se muestran {shown}; todas, con --json."
    COMPARE_NO_CHANGES = "La configuración, el modelo, las preguntas y el índice son los mismos."
    COMPARE_METHOD = "Diferencia con intervalo bootstrap BCa al 95 %; p de McNemar exacto (Hit_Rate@10) y de aleatorización por pares (MRR, nDCG@10), corregido según Holm."
    COLUMN_FIELD = "Campo"
    COLUMN_BEFORE = "Antes"
    COLUMN_AFTER = "Después"
    COLUMN_DIFFERENCE = "Diferencia"
    COLUMN_P_ADJUSTED = "p (Holm)"
    COLUMN_VERDICT = "Veredicto"
    COLUMN_QUESTION = "Pregunta"
    COLUMN_RANK = "Puesto"
    COLUMN_RELEVANT_NOTES = "Notas relevantes"
    COLUMN_INSTEAD = "En su lugar"
    INVALID_EXPERIMENT = "El experimento {origin} no es válido."
    EXPERIMENT_NO_VALUES = "grid.{field}: no tiene ningún valor."
    EXPERIMENT_EMPTY = (
        "No hay nada que probar: da valores en «grid», o nombres en «configurations»."
    )
    EXPERIMENT_TOO_MANY = "El experimento son {count} configuraciones, y se admiten {maximum}: reduce los valores de «grid»."
    EXPERIMENT_ALSO_OTHERS = " (y {count} más)"
    EXPERIMENT_MORE_PROBLEMS = "… y otros problemas: {count}"
    EXPERIMENT_TOO_FEW = "Hay {count} preguntas y hacen falta al menos {needed} para elegir con unas y juzgar con otras."
    EXPERIMENT_PROGRESS = "Probando {count} configuraciones"
    EXPERIMENT_TITLE = "{name}: {count} configuraciones con {queries} preguntas"
    EXPERIMENT_FRONT = "{mark} Frente de Pareto: ninguna otra la mejora en {metric} sin ser más lenta. Las latencias no cuentan la vectorización de la pregunta, que se hace una sola vez."
    EXPERIMENT_BEST = "La mejor en {metric}: «{name}». La cifra de la tabla la favorece: es de las preguntas que la eligieron."
    EXPERIMENT_HELD_OUT = (
        "Juzgada con las {judged} preguntas de {total} que no intervinieron en la elección:"
    )
    EXPERIMENT_FOLDS = "Juzgada en {parts} partes, cada una con lo que eligieron las preguntas de las demás ({judged} de {total}):"
    EXPERIMENT_UNSTABLE = (
        "Las partes no eligen lo mismo, así que la elección depende de pocas preguntas: {names}."
    )
    HELP_EXPERIMENT = "Prueba todas las configuraciones de un fichero YAML, elige la mejor con unas preguntas y la juzga con otras."
    HELP_EXPERIMENT_FILE = (
        "Fichero YAML con «name», «base», «grid» o «configurations», y «selection»."
    )
    COMPARE_SENTENCE = "{metric} {before:.3f} → {after:.3f} ({low:+.3f} … {high:+.3f}, p {p_value}): {verdict} que la de partida."
    COMPARE_SENTENCE_NO_EVIDENCE = "{metric} {before:.3f} → {after:.3f} ({low:+.3f} … {high:+.3f}, p {p_value}): no hay pruebas de que sea distinta de la de partida."
    TABLE_COMPARISON = "| métrica | antes | después | diferencia | IC 95 % | p (Holm) | veredicto |"
    TABLE_CHANGES = "| campo | antes | después |"
    TABLE_BLAME = (
        "| mes | materializado entre ambas | perdidas con notas suyas | perdidas que desplaza |"
    )
    TABLE_FLIPS = "| pregunta | puesto | notas relevantes | en su lugar |"
    MONTHS_NONE = "Entre las dos evaluaciones no se materializó ningún mes con trabajo que hacer."
    FLIPS_NONE = "Ninguna pregunta se pierde ni se gana entre los diez primeros."
    VERDICT_BETTER = "mejor"
    VERDICT_WORSE = "peor"
    VERDICT_NO_EVIDENCE = "sin pruebas"
    INFERIORITY_NON_INFERIOR = "Hit_Rate@10 no es peor en más de {points:g} puntos (IC 90 % de la diferencia: de {low:+.3f} a {high:+.3f})."
    INFERIORITY_INFERIOR = "Hit_Rate@10 es peor en más de {points:g} puntos (IC 90 % de la diferencia: de {low:+.3f} a {high:+.3f})."
    INFERIORITY_UNDECIDED = "No se puede decir si Hit_Rate@10 es peor en más de {points:g} puntos (IC 90 % de la diferencia: de {low:+.3f} a {high:+.3f}): hacen falta más preguntas."
    COLUMN_CONFIGURATION = "Configuración"
    COLUMN_INTERVAL = "IC 95 %"
    COLUMN_QUERIES = "Preguntas"
    COLUMN_GATE = "Control"

    # Main job and UI
    HELP_ASSETS = "El trabajo principal y la interfaz de Dagster."
    HELP_RUN = "Ingesta, indexa, evalúa y promueve sobre la instancia de Dagster; lo que ya está hecho no se repite."
    HELP_UI = "Abre la interfaz web de Dagster y su demonio hasta que se interrumpan."
    UI_SERVING = "Dagster en {url} (Ctrl+C para terminar). La interfaz no pide contraseña: no la expongas fuera de esta máquina."
    UI_PORT_TAKEN = "El puerto {port} está ocupado. Elige otro con UI_PORT, o deja UI_PORT vacío para usar uno libre."
    PROGRESS_NOTES = "Notas ingeridas"
    PROGRESS_NOTE_VECTORS = "Notas con vector"
    PROGRESS_CHUNKED = "Notas fragmentadas"
    PROGRESS_VECTORS = "Fragmentos con vectores de {model}"
    PROGRESS_EVALUATING = "Evaluando {count} configuraciones…"
    INDEXED_WITHOUT_GOLDEN = "Las notas están indexadas, pero no hay preguntas con las que evaluar, así que no se promueve nada. Importa unas con «rag golden import FICHERO» o indica GOLDEN_SOURCE, y repite «make run» con las mismas variables."
    RUN_ENDED_BADLY = "La ejecución {run_id} ha fallado: {reason}\nÁbrela con «make ui»."
    RESULTS_TITLE = "Configuraciones evaluadas con {queries} preguntas (@k: Hit_Rate@k)"
    RESULTS_PROMOTED = "Sirve la configuración «{name}», con el modelo {model}."
    RESULTS_NEXT = (
        'Abre la interfaz de Dagster con «make ui», o pregunta con «.venv/bin/rag retrieve "…"».'
    )

    # Report of evaluations
    HELP_REPORT = "Escribe el informe de evaluación, una página HTML que se abre en cualquier navegador sin conexión: configuraciones, historia, latencia, comparaciones y preguntas que cambian."
    HELP_REPORT_OUTPUT = "Fichero que se escribe. Por defecto, reports/evaluation.html en RAG_HOME."
    HELP_REPORT_OPEN = "Abre además el informe en el navegador."
    REPORT_WRITTEN = "Informe escrito en {path}"
    REPORT_WRITING = "Preparando el informe…"
    REPORT_TITLE = "Informe de evaluación"
    REPORT_READ_AT = "Leído el {moment} UTC. Todas las fechas son UTC."
    REPORT_CONTENTS = "Contenido"
    REPORT_EMPTY = "Todavía no hay ninguna evaluación que mostrar. Siguiente paso: «make run», que lo hace todo; o importa preguntas con «rag golden import FICHERO», evalúa con «rag evaluate CONFIGURACIÓN» y repite «rag report»."
    REPORT_SERVING = "Qué sirve"
    REPORT_CONFIGURATIONS = "Configuraciones"
    REPORT_GATES = "Controles"
    REPORT_GROUPS = "Por categoría, dificultad y etiqueta"
    REPORT_HISTORY = "Historia"
    REPORT_LATENCY = "Latencia por etapa"
    REPORT_ANSWERS = "Respuestas"
    REPORT_MATRIX = "Comparación"
    REPORT_FLIPS = "Preguntas que cambian"
    REPORT_UNFOUND = "Preguntas que ninguna encuentra"
    REPORT_FACT_CONFIGURATION = "Configuración"
    REPORT_FACT_SINCE = "Desde"
    REPORT_FACT_QUESTIONS = "Preguntas"
    REPORT_FACT_INDEX = "Índice"
    REPORT_FACT_GATE = "Control"
    REPORT_FACT_EVALUATIONS = "Evaluaciones"
    REPORT_SERVES = "{configuration}, con el modelo {model}"
    REPORT_SERVES_NOTHING = "Todavía no sirve ninguna configuración promovida."
    REPORT_ROLLED_BACK = "{moment}, al deshacer lo anterior: {reason}"
    REPORT_QUESTIONS = "{count} en el conjunto {golden}"
    REPORT_INDEX = "versión {version}: {notes} notas ({chunked} fragmentadas), {chunks} fragmentos"
    REPORT_GATE = "Hit_Rate@10 ≥ {hit_rate:g}; p95 < {latency:g} ms; frente a lo que sirve, no peor en más de {points:g} puntos"
    REPORT_EVALUATIONS = "{configurations} configuraciones; la última evaluación, el {moment}"
    REPORT_LEADING = "Se dibujan y comparan las {shown} mejores de {total} configuraciones."
    REPORT_EVALUATED = "{moment} · {model} · {queries} preguntas"
    REPORT_IS_SERVING = "★ sirve"
    REPORT_FAILED = "preguntas que fallaron, y cuentan como no encontradas: {count}"
    REPORT_DEGRADED = "preguntas a las que les faltó alguna etapa: {count}"
    REPORT_OTHER_GOLDEN = "con otro conjunto de preguntas ({golden})"
    REPORT_ARCHIVED = "Sus preguntas se archivaron: solo quedan las medias."
    REPORT_CONFIGURATIONS_CAPTION = "La última evaluación de cada configuración, la mejor primero; debajo de cada Hit_Rate, su intervalo de Wilson al 95 %."
    REPORT_GATES_CAPTION = "Qué pasa cada configuración y por qué, según el control de ahora."
    REPORT_UNDER_LIMIT = "{p95:.0f} ms, menos de {limit:g} ms"
    REPORT_OVER_LIMIT = "{p95:.0f} ms, no menos de {limit:g} ms"
    REPORT_ONLY_WARNS = "solo avisa"
    REPORT_AGAINST = "Frente a «{name}» ({moment}), con las mismas preguntas ({queries}). Perdidas: {lost}; ganadas: {gained}."
    REPORT_AGAINST_LEFT_OUT = "No cuentan las preguntas que no están en las dos, o que tienen otras notas relevantes: {count}."
    REPORT_AGAINST_NOTHING = "No hay otra evaluación con la que comparar."
    REPORT_MAY_SERVE = "sí"
    REPORT_MAY_NOT_SERVE = "no: {reason}"
    REPORT_REFERENCE = "no: es una referencia, solo se compara"
    REPORT_CONFIGURATION_GONE = "ya no hay ninguna configuración con ese nombre"
    REPORT_GROUP_CATEGORY = "Por categoría"
    REPORT_GROUP_DIFFICULTY = "Por dificultad"
    REPORT_GROUP_TAG = "Por etiqueta"
    REPORT_GROUPS_CAPTION = "{group}: Hit_Rate@10; debajo, cuántas preguntas de cuántas, y MRR."
    REPORT_GROUPS_MORE = "Se muestran las {shown} etiquetas con más preguntas, de {total}."
    REPORT_GROUP_CELL = "{hits} de {queries} · MRR {mrr:.3f}"
    REPORT_HISTORY_DESCRIPTION = "Líneas de Hit_Rate@10 y MRR de {names} entre el {first} y el {last}. Los valores están en la tabla de evaluaciones."
    REPORT_HISTORY_INTRO = "Arriba, cada promoción lleva la marca de la configuración que pasó a servir; un lote con ✗ cerró el control. Donde cambian las preguntas, las medias de antes y de después no miden lo mismo."
    REPORT_HISTORY_CAPTION = "Las {shown} evaluaciones más recientes de {total}."
    REPORT_PROMOTIONS_CAPTION = "Qué ha servido, lo último primero."
    REPORT_BATCHES_CAPTION = "Los lotes de migración, el último primero."
    REPORT_LATENCY_DESCRIPTION = "Barras apiladas con la mediana de cada etapa de {names}, y marcas en la mediana y el p95 del total. Los valores están en la tabla."
    REPORT_LATENCY_CAPTION = "Milisegundos: p50 y, debajo, p95. Las medianas de las etapas no suman exactamente la del total."
    REPORT_WHOLE = "total"
    REPORT_HIT_RATES_DESCRIPTION = (
        "Hit_Rate@10 e intervalo de cada configuración frente al umbral de {threshold:g}: {values}."
    )
    REPORT_ANSWERS_CAPTION = (
        "Lo que el juez opina de las respuestas; lo que no se pudo juzgar no entra en las medias."
    )
    REPORT_MATRIX_CAPTION = "Cada fila frente a cada columna, con las mismas {queries} preguntas: veredicto sobre MRR, y diferencias (fila menos columna)."
    REPORT_MATRIX_METHOD = "p de aleatorización por pares (MRR) y de McNemar exacto (Hit_Rate@10), corregidas según Holm en toda la tabla; «mejor» o «peor», si p no pasa de 0.05."
    REPORT_MATRIX_NOTHING = "No hay dos configuraciones evaluadas con las mismas preguntas."
    REPORT_MATRIX_LEFT_OUT = "No se comparan {names}: su última evaluación es de otro conjunto de preguntas, o sus preguntas se archivaron."
    REPORT_FLIPS_INTRO = "Las que una evaluación encuentra entre los diez primeros y la otra no. Cada configuración, frente a lo que sirve; lo que sirve, frente a su evaluación anterior."
    REPORT_FLIPS_COUNTS = "{name} (perdidas: {lost}, ganadas: {gained})"
    REPORT_FLIPS_NONE = "Ninguna pregunta cambia."
    REPORT_FLIPS_SHOWN = "Se muestran {shown} de {total}."
    REPORT_LOST = "▼ perdida"
    REPORT_GAINED = "▲ ganada"
    REPORT_RANKS = "puesto {before} → {after}"
    REPORT_GOLD = "Notas relevantes"
    REPORT_INSTEAD = "En su lugar"
    REPORT_NOTE_GONE = "{note_id} (ya no existe o ha caducado)"
    REPORT_UNFOUND_INTRO = "No encuentra ninguna de las {configurations} configuraciones comparadas: {count} de {queries}. Son difíciles, o sus notas relevantes no son las que responden."
    REPORT_UNFOUND_NONE = (
        "Cada pregunta la encuentra alguna de las configuraciones comparadas ({configurations})."
    )
    COLUMN_AGAINST_SERVING = "Frente a lo que sirve"
    COLUMN_MAY_SERVE = "¿Puede servir?"
    COLUMN_STAGE = "Etapa"
    COLUMN_EVALUATED = "Evaluada"
    COLUMN_GOLDEN = "Conjunto"
    COLUMN_SINCE = "Desde"
    COLUMN_FAITHFULNESS = "Fidelidad"
    COLUMN_RELEVANCE = "Pertinencia"
    COLUMN_JUDGED = "Juzgadas"
    COLUMN_UNJUDGED = "Sin juzgar"
    COLUMN_JUDGE = "Juez"
    COLUMN_ANSWERER = "Respuestas de"
    PLOT_HIT_RATES = "Hit_Rate@10 con su intervalo de Wilson al 95 %"
    PLOT_THRESHOLD = "umbral {value:g}"
    PLOT_HIT_RATE_HISTORY = "Hit_Rate@10"
    PLOT_MRR_HISTORY = "MRR"
    PLOT_EVENTS = "Acontecimientos"
    PLOT_PROMOTIONS = "promociones"
    PLOT_ROLLBACKS = "vueltas atrás"
    PLOT_BATCHES = "lotes"
    PLOT_NEW_QUESTIONS = "otras preguntas"
    PLOT_LATENCY = "Mediana de cada etapa; p50 y p95 del total (ms)"
    PLOT_LIMIT = "límite {value:g} ms"

    # Retiring a model
    JOB_RETIRE_MODEL = "Retira un modelo de embeddings al que ya nada apunta: borra sus vectores, sus índices y su cola."
    FIELD_RETIRE_MODEL = "Nombre del modelo que se retira."
    FIELD_RETIRE_CONFIRM = (
        "El mismo nombre, para confirmarlo. Vacío: solo se dice qué se borraría, y la ejecución"
        " termina en fallo."
    )
    RETIRE_NOT_CONFIRMED = "No se ha cambiado nada. Se borrarían del modelo «{model}» los vectores de {chunk_vectors} fragmentos y de {note_vectors} notas ({megabytes:.1f} MB). Para confirmarlo, escribe «{model}» también en confirm."
    RETIRED = "Modelo «{model}» retirado: borrados los vectores de {chunk_vectors} fragmentos y de {note_vectors} notas ({megabytes:.1f} MB)."
    RETIRED_BEFORE = "El modelo «{model}» ya estaba retirado; no se ha cambiado nada."
    MODEL_IN_USE = "No se puede retirar el modelo «{model}», y no se ha cambiado nada:"
    MODEL_IN_USE_SERVING = (
        "es el de la configuración que sirve, «{configuration}»: promueve antes una de otro modelo"
    )
    MODEL_IN_USE_CONFIGURED = "está en EMBEDDING_MODELS, así que el próximo backfill lo volvería a hacer: quita «{model}» de EMBEDDING_MODELS y reinicia"
    LEGACY_VECTORS_MISSING = "LEGACY_EMBEDDING_MODEL={model}, pero la tabla «notes» no tiene la columna «embedding»: deja la variable vacía."
    LEGACY_MODEL_DIFFERS = "Los vectores de «notes.embedding» no son de {model}: su coseno con los que ese modelo hace ahora de los mismos textos es {cosine:.2f}. Corrige LEGACY_EMBEDDING_MODEL, o déjala vacía."
    LEGACY_VECTORS_UNUSABLE = "{month}: {count} vectores de «notes.embedding» no valen, por su dimensión (entre paréntesis) o por ser cero, y esas notas se vectorizan de nuevo. Las primeras: {notes}"
    MODEL_IN_USE_NOTES = "es el de las notas enteras: pon otro en NOTE_EMBEDDING_MODEL, reinicia y materializa note_embeddings"
    MODEL_IN_USE_RUNNING = (
        "una ejecución está haciendo sus vectores o sus índices: espera a que acabe, o cancélala"
    )

    # Promotion
    NOT_PROMOTED = "No se promueve ninguna configuración: {reasons}."
    REFUSED_NOT_EVALUATED = "aún no se ha evaluado"
    REFUSED_CONFIG_CHANGED = "ha cambiado desde su última evaluación; vuelve a evaluarla"
    REFUSED_GOLDEN_CHANGED = (
        "el conjunto de preguntas ha cambiado desde su última evaluación; vuelve a evaluarla"
    )
    REFUSED_HIT_RATE = "no pasa el control, Hit_Rate@10 = {hit_rate:.3f} < {threshold:g}"
    REFUSED_LATENCY = "no pasa el control, p95 = {p95_ms:.0f} ms ≥ {limit_ms:.0f} ms"
    REFUSED_REGRESSION = "es peor que «{name}», que sirve: {verdict}"
    REFUSED_MODEL_BACK = "los vectores de su modelo, «{model}», son posteriores a su última evaluación; vuelve a evaluarla"
    REFUSED_MODEL_RETIRED = "su modelo, «{model}», se retiró"
    CANDIDATE_NOT_FOUND = (
        "No hay ninguna configuración candidata llamada «{name}». Las candidatas son: {known}."
    )

    # Rollback
    HOLD_STOPPED = "La migración está detenida desde el {set_at:%Y-%m-%d %H:%M} UTC; motivo: {reason}. Sigue cuando alguien ejecute el trabajo resume_migration."
    HOLD_ROLLED_BACK = "La migración se deshizo el {set_at:%Y-%m-%d %H:%M} UTC; motivo: {reason}. Se puede volver a empezar cuando alguien ejecute el trabajo resume_migration."
    PROMOTION_HELD = "Nada se promueve solo. {hold} Hasta entonces solo se promueve una candidata si se da su nombre."
    REFUSED_WITHDRAWN = (
        "se retiró después de su última evaluación; vuelve a evaluarla o promuévela por su nombre"
    )
    JOB_ROLLBACK_IMMEDIATE = "Deshace la migración: vuelve a servir «baseline», que busca en las notas enteras, borra todos los fragmentos con sus vectores y no deja que se fragmente más. Las notas no se tocan."
    JOB_ROLLBACK_PARTIAL = "Detiene la migración donde está: lo migrado sigue sirviendo, y las demás notas se encuentran enteras."
    JOB_ROLLBACK_PROMOTION = (
        "Retira la configuración que sirve y vuelve a la que servía antes, con su modelo."
    )
    JOB_RESUME_MIGRATION = (
        "Deja que la migración siga después de rollback_partial o rollback_immediate."
    )
    WORD_IMMEDIATE = "borrar"
    WORD_PARTIAL = "detener"
    FIELD_CONFIRM_IMMEDIATE = "Escribe «borrar» para confirmar que se borran todos los fragmentos."
    FIELD_CONFIRM_PARTIAL = "Escribe «detener» para confirmar que se detiene la migración."
    FIELD_WITHDRAW = (
        "Nombre de la configuración que sirve y hay que retirar. Si ya no sirve, no se cambia nada."
    )
    FIELD_ROLLBACK_REASON = "Por qué; se guarda. Obligatorio."
    FIELD_ACCEPT_MISSING = (
        "Cuántas notas sin vector de nota entera se acepta que dejen de encontrarse."
    )
    ROLLBACK_NOT_CONFIRMED = (
        "No se ha cambiado nada. {consequence} Para confirmarlo, escribe «{word}» en confirm."
    )
    ROLLBACK_WOULD_DROP = (
        "Se borrarían {chunks} fragmentos de {notes} notas y serviría «{configuration}»."
    )
    ROLLBACK_WOULD_STOP = "Se detendría la migración con {chunked} de {notes} notas fragmentadas."
    ROLLBACK_NO_REASON = "No se ha cambiado nada: falta el motivo, en reason."
    ROLLBACK_MODEL_UNUSABLE = "No se ha cambiado nada: «{configuration}» no puede servir porque su modelo, {model}, nunca se ha usado para indexar o se ha retirado."
    ROLLBACK_NO_CHUNK_VECTORS = "No se ha cambiado nada: «{configuration}» no puede servir porque ningún fragmento tiene vectores de su modelo. Materializa antes embeddings/{model}."
    ROLLBACK_NOTES_MISSING = "No se ha cambiado nada: «{configuration}» no encontraría {missing} notas, que no tienen vector de nota entera de {model}. Materializa antes note_embeddings, con NOTE_EMBEDDING_MODEL={model}, en los meses de esas notas (las de meses anteriores a FIRST_MONTH también cuentan); o acepta perderlas con accept_missing: {missing}."
    ROLLBACK_RESUMED = "Alguien ha reanudado la migración mientras se borraban los fragmentos; los que quedan se conservan, y cada nota se encuentra por ellos o entera."
    ROLLBACK_NEVER_SERVED = "No se ha cambiado nada: «{name}» nunca ha servido. Sirve «{serving}»."
    ROLLBACK_NOTHING_SERVES = (
        "No se ha cambiado nada: todavía no se ha promovido ninguna configuración."
    )
    ROLLBACK_NOTHING_BEFORE = "No se ha cambiado nada: antes de «{name}» no sirvió ninguna otra configuración que no se haya retirado después. Promueve otra por su nombre o usa rollback_immediate."
    ORIGIN_PROMOTION = "promoción de «{name}»"

    # Embedded PostgreSQL server
    SERVER_NOT_INITIALISED = (
        "El servidor PostgreSQL incluido todavía no se ha creado en {home}: arráncalo una vez y"
        " vuelve a intentarlo."
    )
    SERVER_NOT_RUNNING = (
        "El servidor PostgreSQL incluido no responde en el puerto {port}: arráncalo y vuelve a"
        " intentarlo."
    )
    SERVER_BINARIES_MISSING = (
        "No se encuentran los programas de PostgreSQL (initdb y postgres) en {path}. Reinstala las"
        " dependencias o indica otra carpeta en RAG_POSTGRES_BIN."
    )
    SERVER_BINARIES_UNUSABLE = (
        "Los programas de PostgreSQL de {path} no se pueden ejecutar en este equipo: {reason}."
        " Indica otra carpeta en RAG_POSTGRES_BIN."
    )
    SERVER_ACCOUNT_MISSING = (
        "PostgreSQL no puede ejecutarse como root y en este equipo no existe el usuario {user}:"
        " crea ese usuario o trabaja con un usuario normal."
    )
    SERVER_PORT_TAKEN = (
        "El puerto {port} ya lo usa otro programa: ciérralo o elige otro puerto para el servidor"
        " PostgreSQL incluido."
    )
    SERVER_ON_OTHER_PORT = (
        "El servidor PostgreSQL incluido ya está en marcha en el puerto {running}, no en el"
        " {wanted}: detenlo antes de cambiar de puerto, o usa el {running}."
    )
    SERVER_LOCK_TIMEOUT = (
        "Otro proceso lleva más de {seconds} segundos arrancando o deteniendo el servidor"
        " PostgreSQL incluido (fichero {path}). Espera a que termine o ciérralo y vuelve a"
        " intentarlo."
    )
    SERVER_FOLDER_UNTRUSTED = (
        "La carpeta {path} no es de fiar: pertenece a otro usuario, otros pueden escribir en ella o"
        " es un enlace. Corrige su dueño y sus permisos, o bórrala si no la creaste tú."
    )
    SERVER_FOLDER_UNREACHABLE = (
        "Los datos de PostgreSQL están en {path}, pero el usuario {user}, con el que se ejecuta el"
        " servidor, no puede entrar ahí. Devuelve el permiso de paso a las carpetas superiores."
    )
    SERVER_NO_REACHABLE_FOLDER = (
        "No hay ninguna carpeta donde el usuario {user} pueda guardar los datos de PostgreSQL"
        " (se probó {tried}). Elige una carpeta de trabajo en la que otros usuarios puedan entrar."
    )
    SERVER_FILE_PROBLEM = (
        "El servidor PostgreSQL incluido no puede usar {path}: {reason}. Comprueba los permisos y"
        " el espacio libre, o elige otra carpeta de trabajo."
    )
    SERVER_REASON_NO_PERMISSION = "no hay permiso de escritura o de lectura"
    SERVER_REASON_DISK_FULL = "no queda espacio en el disco"
    SERVER_REASON_READ_ONLY = "está en un disco de solo lectura"
    SERVER_REASON_NOT_A_FOLDER = "hay un fichero donde debería haber una carpeta"
    SERVER_COMMAND_TIMEOUT = (
        "El programa {program} de PostgreSQL no ha terminado en {seconds} segundos. Comprueba la"
        " carga del equipo y vuelve a intentarlo."
    )
    SERVER_INITDB_FAILED = (
        "No se ha podido crear la base de datos PostgreSQL en {path}. {advice}\n{log}"
    )
    SERVER_START_FAILED = (
        "El servidor PostgreSQL incluido no ha podido arrancar. {advice}\n"
        "Últimas líneas de {path}:\n{log}"
    )
    SERVER_START_TIMEOUT = (
        "El servidor PostgreSQL incluido sigue arrancando después de {seconds} segundos. Espera un"
        " poco y vuelve a intentarlo; si no cambia, detenlo y revisa el registro.\n"
        "Últimas líneas de {path}:\n{log}"
    )
    SERVER_STOP_TIMEOUT = (
        "El servidor PostgreSQL incluido (proceso {pid}) no se ha detenido en {seconds} segundos."
        " Cierra los programas que lo usan y vuelve a intentarlo."
    )
    SERVER_ADVICE_DISK_FULL = "No queda espacio en el disco: libera espacio y vuelve a intentarlo."
    SERVER_ADVICE_CORRUPTED = (
        "Los datos parecen dañados: restaura una copia de seguridad o aparta la carpeta {data} y"
        " vuelve a cargar las notas."
    )
    SERVER_OTHER_VERSION = (
        "Los datos de {data} son de PostgreSQL {found} y los programas, de PostgreSQL {programs}:"
        " usa los de aquella versión (RAG_POSTGRES_BIN) o aparta esa carpeta y vuelve a cargar las"
        " notas."
    )
    SERVER_ADVICE_LOCALE = (
        "Al sistema le falta una configuración regional UTF-8: instala C.UTF-8 o en_US.UTF-8."
    )
    SERVER_ADVICE_GENERIC = "Corrige la causa que indica el registro y vuelve a intentarlo."
    SERVER_PASSWORD_MISSING = (
        "Falta la contraseña del servidor PostgreSQL incluido ({path}), pero sus datos existen:"
        " recupera ese fichero de una copia, o aparta la carpeta {data} y vuelve a cargar las"
        " notas."
    )
    SERVER_PASSWORD_REJECTED = (
        "El servidor PostgreSQL incluido rechaza la contraseña guardada en {path}: devuelve al rol"
        " {role} esa contraseña o recupera el fichero de una copia."
    )
    SERVER_WITHOUT_VECTOR = (
        "Los programas de PostgreSQL usados no incluyen la extensión «vector» (pgvector), necesaria"
        " para la búsqueda semántica: usa los incluidos o añádela a los de RAG_POSTGRES_BIN."
    )
    SERVER_DATABASE_NAME_INVALID = (
        "Nombre de base de datos no válido: {name!r} (entre 1 y 63 bytes, sin caracteres nulos)."
    )

    # Database connection
    DATABASE_UNREACHABLE = "No se puede conectar con la base de datos: {reason}. Comprueba que el servidor está en marcha y que DATABASE_URL es correcta."
    DATABASE_URL_INVALID = "{variable} no es válida. Debe tener la forma postgresql://usuario:contraseña@servidor:puerto/base; los signos @ : / ? # % de la contraseña se escriben %40 %3A %2F %3F %23 %25."
    DATABASE_LOGIN_REFUSED = "El servidor de la base de datos rechaza el usuario «{user}» o su contraseña. Comprueba DATABASE_URL."
    DATABASE_MISSING = "El servidor no tiene la base de datos «{database}». Créala (CREATE DATABASE) o corrige DATABASE_URL."
    DATABASE_TOO_OLD = (
        "El servidor es PostgreSQL {version}; hace falta la versión {minimum} o posterior."
    )
    DATABASE_NOT_UTF8 = "La base «{database}» guarda el texto en {encoding}; hace falta UTF8. Crea otra y copia en ella los datos: CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0;"
    DATABASE_WITHOUT_LETTERS = "La base «{database}» no distingue las letras de los signos («¿qué» sería una sola palabra) porque su LC_CTYPE no es UTF-8. Crea otra y copia en ella los datos: CREATE DATABASE … LC_CTYPE 'C.UTF-8' TEMPLATE template0;"
    DATABASE_NOT_ADOPTABLE = "La tabla «notes» de la base «{database}» no tiene la forma esperada. No se ha cambiado nada. Corrige lo indicado, o cambia el nombre de la tabla (ALTER TABLE notes RENAME TO …) o usa otra base de datos:{problems}"
    DATABASE_ADOPTION_PROBLEM = "{subject}: se espera {expected}, hay {found}"
    DATABASE_NOTHING_FOUND = "nada"
    DATABASE_NO_RIGHTS = "El usuario {user} no puede crear tablas en este esquema. Un administrador debe ejecutar: GRANT CREATE ON SCHEMA public TO {user};"
    VECTOR_NOT_AVAILABLE = "El servidor no tiene la extensión pgvector. Instálala en él (en Debian, el paquete postgresql-<versión>-pgvector) y vuelve a intentarlo."
    VECTOR_NOT_INSTALLED = "Falta la extensión «vector» en la base «{database}» y este usuario no puede crearla. Un administrador debe ejecutar una vez en ella: CREATE EXTENSION vector;"
    VECTOR_TOO_OLD = "La base «{database}» tiene pgvector {version}; hace falta {minimum} o posterior. Actualiza el paquete y ejecuta: ALTER EXTENSION vector UPDATE;"
    DATABASE_DISK_FULL = "No queda espacio en el disco de la base de datos. Lo ya guardado está a salvo: libera espacio y repite la orden."
    MIGRATION_LOCKED = "Otro proceso está actualizando el esquema de la base de datos. Espera a que termine y vuelve a intentarlo."
    MIGRATION_TABLE_IN_USE = "Otra sesión tiene ocupada una tabla desde hace más de {seconds} s, y mientras se espera por ella nadie más puede usarla. No se ha cambiado nada: termina las transacciones abiertas de la otra aplicación y vuelve a intentarlo."
    MIGRATION_NAME_TAKEN = "No se pudo crear el esquema: la base «{database}» ya tiene algo con un nombre que hace falta ({reason}). No se ha cambiado nada. Cámbiale el nombre o usa otra base de datos en DATABASE_URL."
    MIGRATION_FAILED = "No se pudo actualizar el esquema de la base de datos: {reason}. No se ha cambiado nada: corrige la causa y vuelve a intentarlo."

    # Embedding models
    EMBEDDING_INVALID = "El modelo {model} devolvió vectores no válidos: {problem}"
    EMBEDDED_MODEL_MISSING = (
        "Falta el fichero {file} del paquete {package}. Reinstala las dependencias del proyecto."
    )
    EMBEDDED_MODEL_CORRUPT = (
        "El fichero de pesos {file} está dañado o tiene otro formato. Reinstala las dependencias."
    )
    EMBEDDING_MODEL_UNKNOWN = (
        "Modelo de embeddings desconocido: «{name}». Modelos disponibles: {known}"
    )
    LANGUAGE_MODEL_UNKNOWN = "Modelo de lenguaje desconocido: «{name}». Escribe ollama:<modelo>, o nada para no usar ninguno."
    OLLAMA_HOST_INVALID = "La dirección de Ollama no es válida: «{host}»"
    REDIS_URL_INVALID = "REDIS_URL no es válida: se espera redis://…, rediss://… o unix://…, con un puerto numérico."
    OLLAMA_UNAVAILABLE = "Ollama no responde en {host}. Comprueba que está iniciado."
    OLLAMA_SERVER_ERROR = "Ollama ({host}) respondió con un error {status}."
    OLLAMA_UNREADABLE_ANSWER = "Ollama ({host}) dio una respuesta que no se puede interpretar."
    OLLAMA_BROKE_OFF = "Ollama ({host}) interrumpió su respuesta antes de terminarla."
    OLLAMA_INVALID_ANSWER = "El modelo {model} no respondió en la forma pedida."
    OLLAMA_REFUSED = "Ollama ({host}) rechazó la petición para el modelo {model} (error {status})."
    OLLAMA_MODEL_MISSING = "Ollama no tiene el modelo {model}. Descárgalo con: ollama pull {model}"

    # Re-ranking
    RERANKER_NEEDS_LANGUAGE_MODEL = "Para reordenar con «llm» hace falta un modelo de lenguaje: indica en LLM_MODEL uno de tu servidor de Ollama, o usa reranking.method: sentences."

    # Answers and judges
    ANSWER_NOT_FOUND = "No consta en las notas."
    HELP_JUDGE = "Qué juzga las respuestas: embedded (reglas y vectores) o llm (el modelo de lenguaje). Vacío, nada; por defecto, JUDGE."
    EVALUATE_JUDGED = "Respuestas: fidelidad {faithfulness}, pertinencia {relevance} (juzgadas: {judged}, sin juzgar por un fallo: {failures}; juez: {judge}; respuestas de {answerer})."
    JUDGE_UNKNOWN = "«{name}» no es ningún juez. Los que hay: embedded y llm."
    JUDGE_NEEDS_LANGUAGE_MODEL = "El juez «llm» necesita un modelo de lenguaje: indica LLM_MODEL."
    JUDGE_FAILED = "No se ha podido juzgar la respuesta: {reason}"
    ANSWER_FAILED = "No se ha podido redactar la respuesta: {reason}"

    # Command line
    USAGE = "Uso: "
    USAGE_OPTIONS = "[OPCIONES]"
    USAGE_COMMAND = "ORDEN [ARGUMENTOS]..."
    USAGE_SECTION_ARGUMENTS = "Argumentos"
    USAGE_SECTION_OPTIONS = "Opciones"
    USAGE_SECTION_COMMANDS = "Órdenes"
    USAGE_HELP_OPTION = "Muestra esta ayuda y termina."
    USAGE_HINT = "Ayuda: {command} --help"
    USAGE_MISSING_ARGUMENT = "Falta el argumento {name}."
    USAGE_MISSING_COMMAND = "Falta la orden. Las que hay son: {known}."
    USAGE_NO_SUCH_COMMAND = "No existe la orden «{name}». Las que hay son: {known}."
    USAGE_NO_SUCH_OPTION = "No existe la opción «{name}»."
    USAGE_DID_YOU_MEAN = " ¿Querías decir {names}?"
    USAGE_OPTION_NEEDS_VALUE = "La opción «{name}» necesita un valor."
    USAGE_OPTION_WITHOUT_VALUE = "La opción «{name}» no lleva valor."
    USAGE_INVALID_VALUE = "Valor no válido para {name}: {reason}."
    USAGE_EXTRA_ARGUMENTS = "Sobran argumentos: {arguments}. Si la pregunta o la ruta tiene espacios, ponla entre comillas."
    CLI_ERROR = "Error: {message}"
    CLI_UNEXPECTED = "Error inesperado ({kind}): {reason}. Repite la orden como «rag --debug …» para ver los detalles."
    CLI_INTERRUPTED = (
        "Interrumpido. Lo que ya estaba escrito se conserva; repite la orden para seguir."
    )
    CLI_OPENING = "Abriendo la base de datos…"
    CLI_ADDRESS_UNKNOWN = "una dirección que no se entiende"
    CLI_LOADING = "Buscando…"
    HELP_RAG = "Prepara, consulta y evalúa la recuperación sobre tus notas. El estado vive en RAG_HOME; con DATABASE_URL se usa tu propio PostgreSQL."
    HELP_DEBUG = "Muestra el error completo si algo falla. Va antes de la orden."
    HELP_JSON = "Escribe el resultado en JSON por la salida estándar, y nada más."
    HELP_UP = "Arranca el PostgreSQL incluido y pone al día el esquema. Con DATABASE_URL, solo lo segundo."
    HELP_DOWN = "Detiene el PostgreSQL incluido. Los datos se conservan."
    HELP_STATUS = "Dice qué hay en marcha, cuánto hay en la base de datos y qué configuración sirve. No arranca ni cambia nada."
    HELP_INGEST = "Lee notas de una carpeta o un fichero y las guarda. Repetirlo no duplica nada: una nota se reconoce por su origen y su identificador."
    HELP_INGEST_PATH = "Carpeta o fichero: Markdown o texto, JSONL, CSV o JSON de SQuAD."
    HELP_SOURCE_NAME = (
        "Nombre del origen, parte de la identidad de cada nota. Por defecto, NOTES_SOURCE_NAME."
    )
    HELP_PARAGRAPHS = (
        "Párrafos seguidos de un artículo de SQuAD que forman una nota (por defecto, 1)."
    )
    HELP_RETRIEVE = (
        "Busca los fragmentos que responden a una pregunta, con la configuración que sirve."
    )
    HELP_QUESTION = "La pregunta, entre comillas."
    HELP_CONFIG = (
        "Configuración con nombre. Por defecto, la promovida; si no hay ninguna, hybrid_weighted."
    )
    HELP_STRATEGY = "semantic, fulltext, hybrid o hybrid+rerank, en vez de la de la configuración."
    HELP_SET = (
        "Cambia un campo de la configuración, por ejemplo fusion.method=rrf. Se puede repetir."
    )
    HELP_FILTER_SOURCE = "Solo notas de esta fuente."
    HELP_FILTER_TAG = "Solo notas con esta etiqueta. Se puede repetir: con todas ellas."
    HELP_FILTER_NOTE = "Solo esta nota. Se puede repetir."
    HELP_FILTER_SINCE = "Solo notas desde esta fecha."
    HELP_FILTER_UNTIL = "Solo notas anteriores a esta fecha."
    HELP_FILTER_METADATA = "Solo notas con este valor en sus metadatos. Se puede repetir."
    ASSIGNMENT_INVALID = "{option}: «{value}» no tiene la forma nombre=valor."
    HELP_TOP_K = "Cuántos resultados, de 1 a 50."
    HELP_MODEL = "Modelo de embeddings, en vez del de la configuración."
    HELP_EVALUATE = (
        "Pasa todas las preguntas de referencia por una configuración y guarda las métricas."
    )
    HELP_EVALUATE_CONFIG = "Nombre de la configuración."
    HELP_NO_STORE = "No guarda la evaluación."
    HELP_FAIL_UNDER_GATE = "Termina con código 1 si la configuración no pasa el control."
    HELP_GOLDEN = "Las preguntas de referencia: ficheros, una a una, su historial y su revisión."
    HELP_GOLDEN_IMPORT = "Importa un fichero de preguntas, entero o nada, en lugar de las que hay."
    HELP_GOLDEN_EXPORT = "Escribe las preguntas que hay en un fichero JSON."
    HELP_GOLDEN_VALIDATE = (
        "Comprueba un fichero de preguntas contra las notas que hay, sin guardar nada."
    )
    HELP_GOLDEN_FILE = "Fichero JSON de preguntas."
    HELP_GOLDEN_AT = "Como era entonces: versión o hash de «rag golden history», o fecha (UTC; sin hora, el comienzo del día)."
    HELP_GOLDEN_LIST = "Lista las preguntas."
    HELP_GOLDEN_SHOW = "Muestra una pregunta con todo lo que se sabe de ella."
    HELP_GOLDEN_ADD = "Añade una pregunta."
    HELP_GOLDEN_UPDATE = "Cambia los campos indicados de una pregunta."
    HELP_GOLDEN_DELETE = "Borra preguntas, después de preguntar."
    HELP_GOLDEN_HISTORY = "Muestra las versiones del conjunto: cada transacción que lo cambia, con rag o sin él, es una."
    HELP_GOLDEN_DRIFT = "Dice qué preguntas conviene revisar: notas desaparecidas o editadas, mezcla de categorías, repeticiones, y las que aciertan todas las configuraciones o ninguna."
    HELP_GOLDEN_SUGGEST = (
        "Propone notas que quizá respondan también a una pregunta; una persona decide."
    )
    HELP_GOLDEN_ID = "Identificador de la pregunta; basta el comienzo."
    HELP_GOLDEN_QUERY = "La pregunta."
    HELP_GOLDEN_NOTE = "Nota que la responde, por su identificador o el de su origen. Se puede repetir; al cambiar, sustituyen a las que hay."
    HELP_GOLDEN_ANSWER = "La respuesta esperada."
    HELP_GOLDEN_CATEGORY = "factual, causal, temporal, comparative o multi-part."
    HELP_GOLDEN_DIFFICULTY = "De 1 a 5."
    HELP_GOLDEN_TAG = "Etiqueta. Se puede repetir; al cambiar, sustituyen a las que hay, y una vacía las quita todas."
    HELP_GOLDEN_STDIN = "Lee los campos de un objeto JSON de la entrada estándar, con los nombres de los ficheros de preguntas."
    HELP_GOLDEN_REVIEWED = (
        "La pregunta se ha revisado y sigue siendo válida, aunque sus notas hayan cambiado."
    )
    HELP_GOLDEN_YES = "Borra sin preguntar."
    HELP_GOLDEN_ONLY_CATEGORY = "Solo las de esta categoría."
    HELP_GOLDEN_ONLY_TAG = "Solo las que llevan esta etiqueta."
    HELP_GOLDEN_LIMIT = "Cuántas, como mucho."
    HELP_MERGE = "Añade y actualiza, sin borrar las preguntas que no están en el fichero."
    HELP_IMPORT_SQUAD = "Convierte un conjunto de preguntas en formato SQuAD en notas y preguntas de referencia, que sustituyen a las que hay."
    HELP_SQUAD_FILE = "Fichero JSON en formato SQuAD."
    HELP_SQUAD_QUESTIONS = "Cuántas preguntas sortear. Por defecto, todas."
    HELP_SQUAD_SEED = "Semilla del sorteo: la misma semilla da las mismas preguntas."
    HELP_SQUAD_SOURCE = "Nombre del origen. Por defecto, el del fichero sin .json."
    HELP_MIGRATION = "El paso de notas enteras a fragmentos."
    HELP_MIGRATION_STATUS = "Dice cuánto se ha migrado, mes a mes y modelo a modelo, qué calidad hay, qué errores y cuánto falta. No arranca ni cambia nada. El ritmo es el de las últimas 50 transacciones que fragmentaron notas, sin las pausas de más de un minuto, y el de las últimas 50 que hicieron vectores de cada modelo, sin pausas, índices ni comprobaciones."
    HELP_MIGRATION_PLOT = (
        "Escribe además el gráfico del progreso y de la calidad en este fichero PNG."
    )
    SERVER_UP = "PostgreSQL {version} incluido, en marcha en {address}. Datos: {path}"
    SERVER_OWN_DATABASE = "Base de datos propia (DATABASE_URL): PostgreSQL {version} en {address}"
    SERVER_SCHEMA_CURRENT = "El esquema está al día."
    SERVER_SCHEMA_APPLIED = "Esquema puesto al día: {migrations}."
    SERVER_SCHEMA_MISSING = (
        "La base de datos todavía no tiene el esquema, o no está al día: ejecuta «rag up»."
    )
    SERVER_DOWN = "PostgreSQL incluido detenido. Los datos siguen en {path}"
    SERVER_ALREADY_DOWN = "El PostgreSQL incluido no estaba en marcha."
    SERVER_NOT_OURS = (
        "No hay nada que detener: DATABASE_URL apunta a un servidor propio ({address})."
    )
    SERVER_STOPPED = "El PostgreSQL incluido no está en marcha: ejecuta «rag up». Datos: {path}"
    STATUS_COUNTS = "Notas: {notes} ({chunked} fragmentadas). Fragmentos: {chunks}. Preguntas de referencia: {golden}. Fallos de indexación: {failures}."
    STATUS_SERVES = "Sirve «{configuration}» con el modelo {model}, desde {since}."
    STATUS_SERVES_NOTHING = (
        "Todavía no sirve ninguna configuración: «rag retrieve» usa «{default}»."
    )
    STATUS_EVALUATIONS = "Última evaluación de cada configuración"
    STATUS_NOT_REGISTERED = "sin indexar"
    STATUS_SERVING = "sirve"
    STATUS_BUILDING = "disponible"
    STATUS_RETIRED = "retirado"
    COLUMN_MODEL = "Modelo"
    COLUMN_STATE = "Estado"
    COLUMN_CHUNK_VECTORS = "Fragmentos con vectores"
    COLUMN_NOTE_VECTORS = "Notas con vector"
    COLUMN_PENDING = "Notas pendientes"
    COLUMN_MONTH = "Mes"
    COLUMN_NOTES = "Notas"
    COLUMN_PENDING_OF = "Pendientes {model}"
    COLUMN_FAILURES = "Fallos"
    COLUMN_TOTAL = "Total"
    COLUMN_WHERE = "Dónde"
    COLUMN_REASON = "Motivo"
    COLUMN_METRIC = "Métrica"
    COLUMN_VALUE = "Valor"
    COLUMN_GROUP = "Grupo"
    COLUMN_ID = "Id"
    COLUMN_ANSWER = "Respuesta esperada"
    COLUMN_CATEGORY = "Categoría"
    COLUMN_DIFFICULTY = "Dificultad"
    COLUMN_TAGS = "Etiquetas"
    COLUMN_CREATED = "Creada"
    COLUMN_UPDATED = "Actualizada"
    COLUMN_VERSION = "Versión"
    COLUMN_CHANGED = "Cuándo"
    COLUMN_ORIGIN = "Origen"
    COLUMN_INSERTED = "Nuevas"
    COLUMN_UPDATED_COUNT = "Cambiadas"
    COLUMN_DELETED = "Borradas"
    COLUMN_HASH = "Hash"
    COLUMN_NOTE = "Nota"
    COLUMN_SNIPPET = "Comienzo"
    COLUMN_CONFIGURATIONS = "La encuentran"
    GROUP_CATEGORY = "categoría {name}"
    GROUP_DIFFICULTY = "dificultad {name}"
    GROUP_TAG = "etiqueta {name}"
    INGEST_PROGRESS = "Guardando notas"
    INGEST_SUMMARY = "Notas de «{source}»: {inserted} nuevas, {updated} actualizadas, {unchanged} sin cambios, {rejected} rechazadas."
    INGEST_MONTHS = "Meses con cambios: {months}."
    INGEST_NEXT = "Siguiente paso: «NOTES_SOURCE= GOLDEN_SOURCE= make run» fragmenta e indexa esos meses; también puedes materializarlos en la interfaz («make ui»)."
    INGEST_BEFORE_FIRST = "Hay notas anteriores a FIRST_MONTH ({first}) que ningún mes procesa: pon FIRST_MONTH={month}."
    INGEST_AFTER_LAST = "Hay notas con fecha futura ({months}) que ningún mes procesa todavía: corrígela en la tabla notes (created_at); la de la fuente solo cuenta la primera vez."
    INGEST_EMPTY = "No hay ninguna nota en {path}. Se buscan ficheros {suffixes}, también en las subcarpetas; no los ocultos."
    INGEST_ALL_REJECTED = "No se ha guardado ninguna nota: se han rechazado todas ({count})."
    REJECTED_TITLE = "Rechazadas ({count})"
    REJECTED_MORE = "… y {count} más; todas con su motivo, en --json."
    SQUAD_SUMMARY = "Preguntas de referencia: {count}, en lugar de las que había."
    SQUAD_NO_QUESTIONS = "Ninguna pregunta: las de referencia quedan como estaban."
    SQUAD_NEXT = "Siguiente paso: «NOTES_SOURCE= GOLDEN_SOURCE= make run» indexa estas notas y evalúa con estas preguntas (vacías: las notas y las preguntas ya están en la base de datos)."
    GOLDEN_IMPORTED = "{path}: preguntas nuevas: {inserted}; cambiadas: {updated}; borradas: {deleted}. Las demás ya estaban así."
    GOLDEN_MERGED = (
        "{path}: preguntas nuevas: {inserted}; cambiadas: {updated}. Las demás quedan como estaban."
    )
    GOLDEN_RECOVER = "Lo que había está en el historial: «rag golden history» y «rag golden export FICHERO --at VERSIÓN»."
    GOLDEN_SOURCE_RULES = "Manda GOLDEN_SOURCE ({path}): la próxima materialización de golden_dataset volverá a dejar las preguntas como dice ese fichero. Para conservar este cambio, escríbelo en él con «rag golden export», o deja GOLDEN_SOURCE vacío."
    GOLDEN_LISTED = "Preguntas: {count}."
    GOLDEN_NOTE_GONE = "{note_id} (ya no existe)"
    GOLDEN_ADDED = "Pregunta añadida: {golden_id}"
    GOLDEN_UPDATED = "Pregunta actualizada: {golden_id}"
    GOLDEN_DELETED = "Preguntas borradas: {count}. Siguen en el historial."
    GOLDEN_CONFIRM = "Se borrarán {count} preguntas. ¿Seguir? (s/N)"
    WORDS_YES = ("s", "sí", "si")
    GOLDEN_BY_HAND = "(sin «rag», por {user})"
    GOLDEN_OLDER = "Versiones anteriores que no se muestran: {count}. Para verlas, --limit."
    GOLDEN_LIMIT = "--limit debe ser al menos 1: {value}."
    GOLDEN_SUGGESTED = "¿Responden también estas notas? Guárdalas con «rag golden suggest --json > candidatas.json», quita de relevantNoteIds las que no y la etiqueta «candidata» de lo revisado, borra lo demás e impórtalo con «rag golden import candidatas.json --merge». Lo que quites no se vuelve a proponer."
    GOLDEN_NO_SUGGESTIONS = "Ninguna nota sin juzgar aparece entre las tres primeras, por delante de las relevantes, en al menos dos configuraciones y la mitad de ellas."
    DRIFT_SUMMARY = "{questions} preguntas; {configurations} configuraciones evaluadas: {ceiling} preguntas las aciertan todas, {floor} ninguna y {deciding} las distinguen. Por mirar: {findings}."
    DRIFT_GONE = "Notas relevantes que ya no existen o han caducado: {notes}. Pregunta: «{query}»."
    DRIFT_EDITED = "Notas relevantes editadas después de escribir la pregunta: {notes}. Pregunta: «{query}». Si sigue siendo válida, dilo con «rag golden update ID --reviewed»."
    DRIFT_MIX = "La mezcla de categorías se ha desplazado {distance:.2f} (límite: {limit}) desde la evaluación de lo que sirve: {changes}. Las medias de antes y de ahora no miden lo mismo."
    DRIFT_NEAR_DUPLICATE = (
        "Casi la misma pregunta (parecido {similarity:.2f}): «{first}» y «{second}»."
    )
    DRIFT_FLOOR = "Ninguna de las {configurations} configuraciones evaluadas la acierta; comprueba que sus notas relevantes son las que responden: «{query}»."
    DRIFT_DECIDES_NOTHING = "Solo {deciding} preguntas distinguen las {configurations} configuraciones evaluadas; con menos de {needed} ninguna comparación puede ser significativa. Añade preguntas más difíciles."
    GOLDEN_EXPORTED = "Preguntas escritas en {path}: {count}."
    GOLDEN_VALID = "Preguntas válidas en {path}: {count}."
    GOLDEN_FILE_EMPTY = "{path} no tiene ninguna pregunta; no se ha cambiado nada."
    RETRIEVED_DEGRADED = "Etapas omitidas o fallidas: {stages}. Por qué: «rag --debug retrieve …»."
    RETRIEVED_NOTHING = "Ninguna nota responde a esa pregunta con esta configuración."
    RETRIEVED_NOTHING_FILTERED = "Ninguna de las notas que cumplen los filtros responde a esa pregunta con esta configuración."
    RETRIEVED_COUNT = "Resultados: {count}, en {total:.0f} ms"
    RETRIEVED_CACHED = "Resultados: {count}, en {total:.0f} ms, de la caché"
    RETRIEVED_STAGES = "Etapas, en ms: {stages}"
    RETRIEVED_SUB_QUERIES = "Además de la pregunta entera, se han buscado sus partes: {questions}"
    RETRIEVED_HYPOTHETICAL = "También se ha buscado una respuesta imaginada: «{answer}»"
    RETRIEVED_RERANKED = "fusión {before:.3f}, reordenación {score:.3f}"
    INTENT_FACTUAL = "pregunta por un dato"
    INTENT_CAUSAL = "pregunta por una causa"
    INTENT_TEMPORAL = "pregunta por un momento"
    INTENT_COMPARATIVE = "pregunta por una comparación"
    INTENT_ABSTRACT = "pregunta abierta"
    RETRIEVED_CONFIG_PROMOTED = "{name} (promovida)"
    RETRIEVED_CONFIG_DEFAULTS = "valores predeterminados"
    EVALUATE_PROGRESS = "Evaluando {name}"
    EVALUATE_TITLE = "{name} (preguntas: {count})"
    EVALUATE_TAGS_SHOWN = (
        "Se muestran las {shown} etiquetas con más preguntas, de {total}; todas, con --json."
    )
    EVALUATE_LATENCY = "Latencia: p50 {p50:.0f} ms, p95 {p95:.0f} ms (límite {limit:.0f} ms)."
    EVALUATE_FAILED = (
        "Preguntas que fallaron y cuentan como no encontradas: {count}. La primera: {reason}"
    )
    EVALUATE_GATE = "Control: {description}."
    EVALUATE_STORED = "Evaluación guardada: {evaluation_id}"
    EVALUATE_NOT_STORED = "Evaluación sin guardar (--no-store)."
    MIGRATION_NO_NOTES = "No hay notas: empieza por «rag ingest CARPETA»."
    MIGRATION_TOTAL = "{migrated} de {notes} notas migradas ({percent:.2f} %); quedan {remaining}."
    MIGRATION_OUTDATED = (
        "{count} de las que quedan están fragmentadas de otra forma (CHUNKING ha cambiado)."
    )
    MIGRATION_EXPIRED = "{count} notas caducadas, que no se cuentan."
    MIGRATION_FAILED_NOTES = "{count} notas con errores: corrige la causa y, en la interfaz («make ui»), repite los meses que fallaron."
    MIGRATION_CLOSED = "El siguiente lote no empezará: control de calidad cerrado por embeddings/{model} ({finished_at:%Y-%m-%d %H:%M} UTC): {reason}. Corrige la causa y repite la comprobación retrieval_quality de ese activo, o lanza el lote con un motivo en override_quality_gate."
    MIGRATION_IDLE = "No hay nada en marcha. Siguiente paso: materializa en la interfaz («make ui») los meses que faltan de chunks y embeddings, o ejecuta «make run»."
    MIGRATION_COMPLETE = "Todas las notas están migradas, con todos sus vectores."
    MIGRATION_READY_AT = (
        "Tiempo restante: {duration}; acabará hacia el {ready_at:%Y-%m-%d %H:%M} UTC."
    )
    MIGRATION_NO_ETA = "En marcha. Todavía no se sabe cuánto falta: hace falta que se fragmenten más notas y que cada modelo haga vectores."
    MIGRATION_PACE_NOTES = "{rate:.0f} notas/min"
    MIGRATION_PACE_VECTORS = "{rate:.0f} vectores/min con {model}"
    MIGRATION_PACE = "Ritmo del último trabajo: {pace}."
    MIGRATION_SERVES_NOTHING = "Todavía no sirve ninguna configuración promovida."
    MIGRATION_PLOTTED = "Gráfico escrito en {path}."
    MIGRATION_PLOT_REFUSED = "No se puede escribir el gráfico en {path}: {reason}."
    MIGRATION_MODELS = "Modelos"
    MIGRATION_QUALITY = "Calidad"
    MIGRATION_BATCHES = "Último lote de cada modelo"
    MIGRATION_ERRORS = "Errores por clase"
    MIGRATION_NOW = "ahora"
    MIGRATION_BASELINE = "punto de partida"
    MIGRATION_AFTER_BATCH = "lote de {model}"
    MIGRATION_GATE_OPEN = "abierto"
    MIGRATION_GATE_CLOSED = "cerrado"
    MIGRATION_GATE_OVERRIDDEN = "cerrado, y abierto por una persona: {reason}"
    MIGRATION_MEASURED_AGAIN = "medido de nuevo"
    DURATION_MINUTES = "{minutes} min"
    DURATION_HOURS = "{hours} h {minutes} min"
    DURATION_DAYS = "{days} d {hours} h"
    STAGE_CHUNK = "fragmentar"
    STAGE_EMBED_NOTE = "vector de la nota entera"
    STAGE_EMBED_CHUNK = "vectores de los fragmentos"
    COLUMN_MIGRATED = "Migradas"
    COLUMN_SERVES = "Sirve"
    COLUMN_MEASURED = "Medido (UTC)"
    COLUMN_MONTHS = "Meses"
    COLUMN_KIND = "Clase"
    COLUMN_COUNT = "Total"
    COLUMN_EXAMPLES = "Ejemplos"
    COLUMN_OF = "De"
    PLOT_PROGRESS = "Notas por mes"
    PLOT_MIGRATED = "migradas"
    PLOT_REMAINING = "pendientes"
    PLOT_FAILED = "con errores"
    PLOT_QUALITY = "Hit_Rate@10 después de cada lote"
    PLOT_BASELINE = "punto de partida ({value:.3f})"
    PLOT_FLOOR = "mínimo ({value:.3f})"
    PLOT_CLOSED = "control cerrado"
    PLOT_NO_BATCHES = "Todavía no se ha medido ningún lote"
    PLOT_NO_NOTES = "No hay notas"


METRIC_WORDS = {
    "hit_rate_at_1": "Hit_Rate@1",
    "hit_rate_at_3": "Hit_Rate@3",
    "hit_rate_at_5": "Hit_Rate@5",
    "hit_rate_at_10": "Hit_Rate@10",
    "mrr": "MRR",
    "ndcg_at_10": "nDCG@10",
    "precision_at_10": "Precision@10",
    "recall_at_10": "Recall@10",
}
"""How the field writes the names of the metrics, in any language."""
