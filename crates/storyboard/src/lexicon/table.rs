//! The word table: words of each language where a common one exists. Words are lower case; a group shares its
//! meanings. Chinese and Japanese share their characters and so their column, `cjk`.

use super::super::colour::Rgb;
use super::Framing as F;
use super::Hour as H;
use super::Meaning::{
    self, Colour, Framing, Ground, Heaven, Hour, Mood, Motion, Neon, Not, Place, Subject, Then,
    Weather,
};
use super::Mood as E;
use super::Motion as M;
use super::Place as P;
use super::Subject as S;
use super::Weather as W;

const fn ink(code: u32) -> Meaning {
    Colour(Rgb::hex(code))
}

/// Words of each language, `en a|b; es c; fr d; de e; cjk f`, and what they mean.
pub(super) const GROUPS: &[(&str, &[Meaning])] = &[
    // Hours
    (
        "en dawn|sunrise|sun rises|rising sun|sun comes up|daybreak|first light; es amanecer; fr aube; de sonnenaufgang|morgengrauen; cjk 黎明|清晨|日出|夜明け|朝焼け",
        &[Hour(H::Dawn), Subject(S::Sun)],
    ),
    (
        "en morning|early morning; es mañana; fr matin; de morgen; cjk 早晨|早上|朝",
        &[Hour(H::Dawn)],
    ),
    (
        "en day|daytime|noon|midday|daylight|sunny|afternoon; es mediodía|soleado; fr midi|ensoleillé; de mittag|sonnig|tag; cjk 白天|中午|正午|晴天|昼",
        &[Hour(H::Day)],
    ),
    (
        "en golden hour|sunset|sun sets|setting sun|sun goes down|evening|late afternoon; es atardecer|puesta de sol; fr coucher de soleil|soir; de sonnenuntergang|abend; cjk 黄昏|日落|夕阳|傍晚|夕焼け|夕日",
        &[Hour(H::Golden), Subject(S::Sun)],
    ),
    (
        "en dusk|twilight|blue hour; es crepúsculo; fr crépuscule; de dämmerung; cjk 暮色|薄暮|夕暮れ",
        &[Hour(H::Dusk)],
    ),
    (
        "en night|midnight|nighttime; es noche|medianoche; fr nuit|minuit; de nacht|mitternacht; cjk 夜晚|夜空|夜里|午夜|深夜|夜",
        &[Hour(H::Night)],
    ),
    (
        "en starry|stars|star|starlight|milky way; es estrellas; fr étoiles; de sterne; cjk 星空|星星|星",
        &[Hour(H::Night), Heaven],
    ),
    (
        "en moonlit|moonlight|moon|full moon; es luna; fr lune; de mond; cjk 月亮|月光|明月|月",
        &[Hour(H::Night), Subject(S::Moon)],
    ),
    (
        "en sun|sunshine|sunlight; es sol; fr soleil; de sonne; cjk 太阳|阳光|太陽",
        &[Subject(S::Sun)],
    ),
    // Weather
    (
        "en clear|cloudless; es despejado; fr dégagé; de klar; cjk 晴朗|晴",
        &[Weather(W::Clear)],
    ),
    (
        "en cloud|cloudy|overcast; es nubes|nublado; fr nuage|nuageux; de wolken|bewölkt; cjk 云|多云|白云|雲|曇り",
        &[Weather(W::Clouds), Heaven],
    ),
    (
        "en rain|rainy|raining|drizzle|wet; es lluvia; fr pluie; de regen; cjk 下雨|雨",
        &[Weather(W::Rain)],
    ),
    (
        "en snowy|snow-capped|winter|frozen|icy; es nevado|invierno; fr hiver; de winter; cjk 冬",
        &[Weather(W::Snow)],
    ),
    (
        "en snow|snowing|snowfall|snowflake|blizzard; es nieve; fr neige; de schnee; cjk 下雪|大雪|雪",
        &[Weather(W::Snow), Weather(W::Snowfall)],
    ),
    (
        "en storm|stormy|thunder|lightning|thunderstorm; es tormenta; fr orage|tempête; de gewitter|sturm; cjk 暴风雨|雷|嵐",
        &[Weather(W::Storm)],
    ),
    (
        "en fog|foggy|mist|misty|haze|hazy; es niebla; fr brouillard|brume; de nebel; cjk 雾|薄雾|霧",
        &[Weather(W::Fog)],
    ),
    (
        "en wind|windy|breeze|gust; es viento; fr vent; de wind; cjk 风|微风|風",
        &[Weather(W::Wind)],
    ),
    // Places
    (
        "en sea|ocean|seaside|beach|coast|coastal|shore|wave|harbor|harbour|bay|island; es mar|océano|playa|costa; fr mer|océan|plage; de meer|strand|küste|ozean; cjk 大海|海边|海滩|海洋|海岸|海",
        &[Place(P::Sea)],
    ),
    (
        "en mountain|peak|alps|alpine|summit|glacier|himalaya; es montaña; fr montagne; de berg|gebirge|berge; cjk 山脉|高山|山",
        &[Place(P::Mountains)],
    ),
    ("cjk 雪山", &[Place(P::Mountains), Weather(W::Snow)]),
    (
        "en forest|wood|woods|jungle|rainforest|pines|grove; es bosque|selva; fr forêt; de wald; cjk 森林|树林|竹林|林|森",
        &[Place(P::Forest), Ground],
    ),
    (
        "en desert|dune|sahara|sand|dunes; es desierto|dunas; fr désert|dunes; de wüste; cjk 沙漠|沙丘|砂漠",
        &[Place(P::Desert)],
    ),
    (
        "en city|street|downtown|skyline|skyscraper|urban|metropolis|tokyo|new york|alley|rooftop; es ciudad|calle; fr ville|rue; de stadt|straße; cjk 城市|街道|街|都市|东京|上海",
        &[Place(P::City)],
    ),
    (
        "en neon|cyberpunk; es neón; fr néon; de neon; cjk 霓虹|ネオン",
        &[Neon, Place(P::City), Hour(H::Night)],
    ),
    (
        "en hill|meadow|field|village|farm|countryside|grass|grassland|prairie|valley|garden|park|road|highway|vineyard; es campo|prado|pueblo|colina|jardín; fr champ|colline|jardin; de feld|wiese|dorf|hügel|garten; cjk 草地|田野|村庄|山坡|花园|草原|乡村|丘|公園",
        &[Place(P::Hills), Ground],
    ),
    (
        "en lake|river|pond|fjord|lagoon|stream; es lago|río; fr lac|rivière; de see|fluss; cjk 湖|河|江|川",
        &[Place(P::Lake)],
    ),
    (
        "en space|galaxy|cosmos|universe|nebula|orbit|outer space; es espacio|galaxia; fr espace|galaxie; de galaxie|weltraum|weltall; cjk 太空|宇宙|银河|星系",
        &[Place(P::Space), Hour(H::Night)],
    ),
    (
        "en underwater|undersea|coral|reef|deep sea|seabed; es submarino|bajo el agua; fr sous-marin|sous l'eau; de unterwasser; cjk 水下|海底|水中",
        &[Place(P::Underwater)],
    ),
    (
        "en room|window|windowsill|interior|kitchen|bedroom|indoors|cafe|café|library|office; es habitación|ventana; fr chambre|fenêtre; de café|zimmer|fenster|küche; cjk 房间|窗台|窗户|窗|室内|部屋",
        &[Place(P::Room)],
    ),
    (
        "en sky|heaven|above the clouds; es cielo; fr ciel; de himmel; cjk 天空|空",
        &[Heaven],
    ),
    ("en sea of clouds; cjk 云海|雲海", &[Place(P::Sky)]),
    (
        "en abstract|geometric|feeling|idea|dream|memory|music; es abstracto; fr abstrait; de abstrakt; cjk 抽象|梦",
        &[Place(P::Abstract)],
    ),
    // Subjects
    (
        "en hot air balloon|hot-air balloon; es globo aerostático; fr montgolfière; de heißluftballon; cjk 热气球|気球",
        &[Subject(S::Balloon)],
    ),
    (
        "en balloon; es globo; fr ballon; de ballon|luftballon; cjk 气球|風船",
        &[Subject(S::ToyBalloon)],
    ),
    (
        "en boat|sailboat|ship|yacht|sail|fishing boat|canoe; es barco|velero; fr bateau|voilier; de boot|schiff|segelboot; cjk 帆船|小船|船",
        &[Subject(S::Boat)],
    ),
    (
        "en bird|seagull|gull|crow|swallow|geese|eagle|dove|flock; es pájaro|aves|gaviota; fr oiseau|mouette; de vogel|vögel|möwe; cjk 鸟|海鸥|飞鸟|鳥",
        &[Subject(S::Birds)],
    ),
    (
        "en tree|oak|cherry tree; es árbol; fr arbre; de baum; cjk 树|大树|木|桜",
        &[Subject(S::Tree), Ground],
    ),
    (
        "en house|cottage|cabin|hut|barn; es casa|cabaña; fr maison|cabane; de haus|hütte; cjk 房子|小屋|家",
        &[Subject(S::House)],
    ),
    (
        "en car|taxi|cab|automobile|auto; es coche|carro|auto; fr voiture; de taxi|auto|wagen; cjk 汽车|出租车|车|車",
        &[Subject(S::Car)],
    ),
    (
        "en train|locomotive|railway; es tren; fr train; de zug; cjk 火车|列车|電車",
        &[Subject(S::Train)],
    ),
    (
        "en cat|kitten; es gato|gatito; fr chat; de katze; cjk 猫|小猫",
        &[Subject(S::Cat)],
    ),
    (
        "en dog|puppy; es perro; fr chien; de hund; cjk 狗|小狗|犬",
        &[Subject(S::Dog)],
    ),
    (
        "en horse|stallion; es caballo; fr cheval; de pferd; cjk 马|馬",
        &[Subject(S::Horse)],
    ),
    (
        "en camel|caravan; es camello; fr chameau; de kamel; cjk 骆驼|ラクダ",
        &[Subject(S::Camel)],
    ),
    (
        "en person|man|woman|girl|boy|child|traveler|traveller|hiker|figure|people|human|astronaut|monk; es hombre|mujer|niña|niño|persona|gente; fr homme|femme|fille|garçon|enfant; de person|mann|frau|mädchen|junge|kind|mensch; cjk 人|女孩|男孩|女人|男人|孩子|少女|少年",
        &[Subject(S::Person)],
    ),
    (
        "en fish|school of fish; es pez|peces; fr poisson; de fisch; cjk 鱼|魚",
        &[Subject(S::Fish)],
    ),
    (
        "en whale; es ballena; fr baleine; de wal; cjk 鲸鱼|鲸|クジラ",
        &[Subject(S::Whale)],
    ),
    (
        "en rocket|missile; es cohete; fr fusée; de rakete; cjk 火箭|ロケット",
        &[Subject(S::Rocket)],
    ),
    (
        "en spaceship|spacecraft|starship|ufo|saucer; es nave espacial; fr vaisseau; de raumschiff; cjk 飞船|宇宙飞船|宇宙船",
        &[Subject(S::Saucer)],
    ),
    (
        "en planet|saturn|jupiter; es planeta; fr planète; de planet; cjk 行星|惑星",
        &[Subject(S::Planet)],
    ),
    (
        "en lighthouse; es faro; fr phare; de leuchtturm; cjk 灯塔|灯台",
        &[Subject(S::Lighthouse)],
    ),
    (
        "en flower|rose|tulip|poppy|blossom|sunflower; es flor; fr rose|fleur; de rose|blume; cjk 花|花朵|向日葵",
        &[Subject(S::Flower)],
    ),
    (
        "en kite; es cometa; fr cerf-volant; de drachen; cjk 风筝|凧",
        &[Subject(S::Kite)],
    ),
    (
        "en butterfly|butterflies; es mariposa; fr papillon; de schmetterling; cjk 蝴蝶|蝶",
        &[Subject(S::Butterfly)],
    ),
    (
        "en plane|airplane|aeroplane|aircraft|jet; es avión; fr avion; de flugzeug; cjk 飞机|飛行機",
        &[Subject(S::Plane)],
    ),
    (
        "en umbrella; es paraguas; fr parapluie; de regenschirm; cjk 雨伞|伞|傘",
        &[Subject(S::Umbrella)],
    ),
    // Colours
    (
        "en red|crimson|scarlet|ruby; es rojo|roja; fr rouge; de rot|rote|roter|rotes; cjk 红色|红|赤|赤い",
        &[ink(0xd3_2f2f)],
    ),
    (
        "en orange|tangerine|amber; es naranja; fr orange; de orange; cjk 橙色|橙|オレンジ",
        &[ink(0xf0_8228)],
    ),
    (
        "en yellow|lemon; es amarillo|amarilla; fr jaune; de gelb|gelbe|gelber; cjk 黄色|黄|黄色い",
        &[ink(0xf2_c832)],
    ),
    (
        "en gold|golden; es dorado; fr doré; cjk 金色|金",
        &[ink(0xe0_a83a)],
    ),
    (
        "en green|emerald|lush; es verde; fr vert|verte; de grün|grüne|grüner; cjk 绿色|绿|緑",
        &[ink(0x3f_9c52)],
    ),
    (
        "en teal|turquoise|cyan|aqua; es turquesa; fr turquoise; de türkis; cjk 青色|青绿",
        &[ink(0x1f_a3a3)],
    ),
    (
        "en blue|azure|cobalt; es azul; fr bleu|bleue; de blau|blaue|blauer; cjk 蓝色|蓝|青|青い",
        &[ink(0x2f_66c8)],
    ),
    (
        "en indigo|navy; fr indigo; de indigo; cjk 靛蓝|藍",
        &[ink(0x2b_3a8c)],
    ),
    (
        "en purple|violet|lavender; es morado|violeta|lila; fr violet|violette|lila; de lila; cjk 紫色|紫",
        &[ink(0x80_48b8)],
    ),
    (
        "en pink|magenta; es rosa|fuchsia; fr magenta|fuchsia; de magenta|rosa; cjk 粉色|粉红|粉|ピンク",
        &[ink(0xe8_6fa4)],
    ),
    (
        "en white|ivory; es blanco|blanca; fr blanc|blanche; de weiß|weiße; cjk 白色|白|白い",
        &[ink(0xf2_f0ea)],
    ),
    (
        "en black; es negro|negra; fr noir|noire; de schwarz|schwarze; cjk 黑色|黑|黒",
        &[ink(0x22_2228)],
    ),
    (
        "en grey|gray|silver; es gris|plateado; fr gris; de grau|graue; cjk 灰色|银色|灰",
        &[ink(0x8a_9098)],
    ),
    (
        "en brown|bronze|copper; es marrón; fr brun; de braun; cjk 棕色|褐色|茶色",
        &[ink(0x8a_5a3a)],
    ),
    // Motion
    (
        "en rise|rising|rises|lift|lifts|soar|soaring|ascend|climb|launch|takes off; es sube|elevarse; fr monte|s'élève; de steigt; cjk 升起|上升|起飞",
        &[Motion(M::Rise)],
    ),
    (
        "en fall|falls|falling|descend|sink|sinking|landing; es cae; fr tombe; de fällt; cjk 落下|下降",
        &[Motion(M::Fall)],
    ),
    (
        "en fly|flies|flying|run|runs|running|drive|drives|driving|sails|sailing|walk|walks|walking|cross|crosses|crossing|drift|drifts|drifting|float|floats|floating|swim|swims|swimming|gallop|galloping|pass|passes|glide|gliding; es vuela|corre|navega|camina|flotando; fr vole|court|marche|flotte; de fliegt|läuft|fährt|schwebt; cjk 飞|飞过|跑|奔跑|走|漂浮|游|驶过",
        &[Motion(M::Travel)],
    ),
    (
        "en fast|quick|quickly|racing|speeding|speed|rush|rushing; es rápido; fr rapide; de schnell; cjk 快速|飞速|快",
        &[Motion(M::Fast)],
    ),
    (
        "en slow|slowly|gently|gentle|slow motion; es lento|lentamente; fr lentement; de langsam; cjk 慢慢|缓缓|缓慢|慢",
        &[Motion(M::Slow)],
    ),
    (
        "en still|static|locked off|motionless; cjk 静止",
        &[Motion(M::Still)],
    ),
    // Camera
    (
        "en close-up|close up|closeup|macro|portrait of; es primer plano; fr gros plan; de nahaufnahme; cjk 特写|近景",
        &[Framing(F::Close)],
    ),
    (
        "en wide|wide shot|establishing|panorama|panoramic|vista; es vista|plano general; fr panorama|plan large; de panorama|totale; cjk 全景|远景|广角",
        &[Framing(F::Wide)],
    ),
    (
        "en aerial|drone|bird's eye|from above|overhead; es aéreo; fr aérien; de luftaufnahme; cjk 航拍|鸟瞰",
        &[Framing(F::Aerial)],
    ),
    ("cjk 推进|拉近|推近", &[Framing(F::PushIn)]),
    ("en reveal; cjk 拉远", &[Framing(F::PullOut)]),
    ("cjk 左摇|向左摇|向左平移", &[Framing(F::PanLeft)]),
    (
        "en tracking shot; cjk 平移|跟拍|右摇|向右摇|向右平移",
        &[Framing(F::PanRight)],
    ),
    (
        "en orbiting|orbits|circling|circles around|rotating around; cjk 环绕",
        &[Framing(F::Orbit)],
    ),
    (
        "en timelapse|time-lapse|time lapse|hyperlapse; cjk 延时",
        &[Framing(F::Timelapse)],
    ),
    // Mood
    (
        "en calm|peaceful|serene|quiet|tranquil|silent; es tranquilo; fr calme; de ruhig; cjk 宁静|平静|安静",
        &[Mood(E::Calm)],
    ),
    (
        "en happy|joyful|cheerful|playful|bright|festive|celebration; es alegre; fr joyeux; de fröhlich; cjk 快乐|欢乐|开心",
        &[Mood(E::Joyful)],
    ),
    (
        "en sad|melancholy|melancholic|lonely|lonesome|somber|nostalgic|monday; es triste; fr triste; de traurig; cjk 悲伤|孤独|忧伤",
        &[Mood(E::Sad)],
    ),
    (
        "en tense|dark|dramatic|ominous|epic|scary|horror|thriller|menacing|war|battle; es tenso|dramático; fr dramatique; de düster; cjk 紧张|恐怖|史诗",
        &[Mood(E::Tense)],
    ),
    (
        "en dreamy|dreamlike|magical|ethereal|fantasy|surreal|mystical|enchanted; es mágico; fr magique; de magisch|traumhaft; cjk 梦幻|魔法|神秘",
        &[Mood(E::Dreamy)],
    ),
    // Grammar
    (
        "en no|without|never; es no|sin; fr sans; de ohne; cjk 没有|无",
        &[Not],
    ),
    (
        "en then|cut to|next shot|afterwards; es luego|después; fr puis|ensuite; de dann|danach; cjk 然后|接着|切到",
        &[Then],
    ),
];
